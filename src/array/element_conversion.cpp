// SPDX-License-Identifier: Apache-2.0
#include "array/element_conversion.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "shoal/array/expression.h"
#include "shoal/base/error.h"

namespace shoal::array {
namespace {

template <class From>
From load(const std::byte* raw, bool swapped) {
  std::byte bytes[sizeof(From)];
  std::memcpy(bytes, raw, sizeof bytes);
  if (swapped) std::reverse(std::begin(bytes), std::end(bytes));
  From value;
  std::memcpy(&value, bytes, sizeof bytes);
  return value;
}

template <class From, class T>
void convert_real(bool swapped, const std::byte* raw, std::span<T> out) {
  for (T& element : out) {
    const From value = load<From>(raw, swapped);
    if constexpr (std::is_same_v<From, float16>)
      element = T(static_cast<Real<T>>(static_cast<float>(value)));
    else
      element = T(static_cast<Real<T>>(value));
    raw += sizeof(From);
  }
}

template <class From, class T>
void convert_complex(bool swapped, const std::byte* raw, std::span<T> out) {
  if constexpr (is_complex<T>)
    for (T& element : out) {
      element = T(static_cast<Real<T>>(load<From>(raw, swapped)),
                  static_cast<Real<T>>(load<From>(raw + sizeof(From), swapped)));
      raw += 2 * sizeof(From);
    }
  else
    fail(ErrorCode::invalid_argument, "complex elements do not become real");
}

}  // namespace

template <class T>
void convert_elements(DType from, bool swapped, const std::byte* raw, std::span<T> out) {
  switch (from) {
    case DType::float64: return convert_real<double>(swapped, raw, out);
    case DType::float32: return convert_real<float>(swapped, raw, out);
    case DType::float16: return convert_real<float16>(swapped, raw, out);
    case DType::complex128: return convert_complex<double>(swapped, raw, out);
    case DType::complex64: return convert_complex<float>(swapped, raw, out);
    case DType::int64: return convert_real<std::int64_t>(swapped, raw, out);
    case DType::int32: return convert_real<std::int32_t>(swapped, raw, out);
    case DType::int16: return convert_real<std::int16_t>(swapped, raw, out);
    case DType::int8: return convert_real<std::int8_t>(swapped, raw, out);
    case DType::uint64: return convert_real<std::uint64_t>(swapped, raw, out);
    case DType::uint32: return convert_real<std::uint32_t>(swapped, raw, out);
    case DType::uint16: return convert_real<std::uint16_t>(swapped, raw, out);
    case DType::uint8:
    case DType::boolean: return convert_real<std::uint8_t>(swapped, raw, out);
    default: break;
  }
  fail(ErrorCode::unsupported, fmt::format("elements of type {} in a file", to_string(from)));
}

template void convert_elements(DType, bool, const std::byte*, std::span<float>);
template void convert_elements(DType, bool, const std::byte*, std::span<double>);
template void convert_elements(DType, bool, const std::byte*, std::span<std::complex<float>>);
template void convert_elements(DType, bool, const std::byte*, std::span<std::complex<double>>);

}  // namespace shoal::array
