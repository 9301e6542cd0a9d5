// SPDX-License-Identifier: Apache-2.0
// Element types as run-time values: what a type-erased buffer says about its elements.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shoal/base/half.h"
#include "shoal/base/located.h"

namespace shoal {

enum class DType : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128,
  boolean,
  located_int32,  // Located<T>
  located_int64,
  located_float32,
  located_float64,
};

std::size_t size_of(DType dtype);
const char* to_string(DType dtype);

/// dtype_of<T>: the DType of a C++ element type; a type without one does not compile.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::int8;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::uint8;
};
template <>
struct DTypeOf<std::byte> {
  static constexpr DType value = DType::uint8;
};
template <>
struct DTypeOf<char> {
  static constexpr DType value = DType::uint8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::int16;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::uint16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::int32;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::uint32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::int64;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::uint64;
};
template <>
struct DTypeOf<float16> {
  static constexpr DType value = DType::float16;
};
template <>
struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::bfloat16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::float32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::float64;
};
template <>
struct DTypeOf<std::complex<float>> {
  static constexpr DType value = DType::complex64;
};
template <>
struct DTypeOf<std::complex<double>> {
  static constexpr DType value = DType::complex128;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};

template <>
struct DTypeOf<Located<std::int32_t>> {
  static constexpr DType value = DType::located_int32;
};
template <>
struct DTypeOf<Located<std::int64_t>> {
  static constexpr DType value = DType::located_int64;
};
template <>
struct DTypeOf<Located<float>> {
  static constexpr DType value = DType::located_float32;
};
template <>
struct DTypeOf<Located<double>> {
  static constexpr DType value = DType::located_float64;
};

template <class T>
inline constexpr DType dtype_of = DTypeOf<std::remove_cv_t<T>>::value;

}  // namespace shoal
