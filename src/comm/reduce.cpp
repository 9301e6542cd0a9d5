// SPDX-License-Identifier: Apache-2.0
#include "comm/reduce.h"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;
template <class T>
inline constexpr bool is_located = false;
template <class T>
inline constexpr bool is_located<Located<T>> = true;
template <class T>
inline constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Half precision accumulates in float; narrow integers in themselves (wrap-around is what MPI does).
template <class T>
using Accumulator = std::conditional_t<is_half<T>, float, T>;

// These loops are vectorised: nothing in one step depends on another, though `out` may be `a` or `b`.
template <class A, class T, class Apply>
void convert_and_apply(const A* a, const T* b, A* out, std::int64_t count, Apply apply) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) out[i] = apply(a[i], static_cast<A>(b[i]));
}

template <class A, class T>
void convert(const A* from, T* to, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
}

// Block by block, so that `out` is written only after all inputs have been read there.
template <class T, class Apply>
void fold(std::span<const void* const> inputs, void* out, std::int64_t count, Apply apply) {
  using A = Accumulator<T>;
  const auto input = [&](std::size_t r) { return static_cast<const T*>(inputs[r]); };
  if constexpr (std::is_same_v<A, T>) {
    if (inputs.size() == 2) return convert_and_apply(input(0), input(1), static_cast<T*>(out), count, apply);
  }
  constexpr std::int64_t block = 512;
  alignas(A) std::byte room[block * sizeof(A)];  // uninitialised, unlike an array of complex numbers
  A* const sums = reinterpret_cast<A*>(room);
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t length = std::min(block, count - begin);
    convert(input(0) + begin, sums, length);
    for (std::size_t r = 1; r < inputs.size(); ++r)
      convert_and_apply(sums, input(r) + begin, sums, length, apply);
    convert(sums, static_cast<T*>(out) + begin, length);
  }
}

[[noreturn]] void refuse(DType dtype, Reduction reduction) {
  fail(ErrorCode::unsupported,
       fmt::format("reduction {} is not defined for {}", to_string(reduction), to_string(dtype)));
}

template <class T>
void combine_as(DType dtype, Reduction reduction, std::span<const void* const> inputs, void* out,
                std::int64_t count) {
  using A = Accumulator<T>;
  constexpr bool ordered = !is_complex<T>;
  constexpr bool integral = std::is_integral_v<T>;
  switch (reduction) {
    case Reduction::sum:
      if constexpr (!is_located<T>)
        return fold<T>(inputs, out, count, [](A a, A b) { return static_cast<A>(a + b); });
      break;
    case Reduction::product:
      if constexpr (!is_located<T>)
        return fold<T>(inputs, out, count, [](A a, A b) { return static_cast<A>(a * b); });
      break;
    case Reduction::min:
      if constexpr (ordered) return fold<T>(inputs, out, count, [](A a, A b) { return least(a, b); });
      break;
    case Reduction::max:
      if constexpr (ordered) return fold<T>(inputs, out, count, [](A a, A b) { return greatest(a, b); });
      break;
    case Reduction::logical_and:
      if constexpr (integral)
        return fold<T>(inputs, out, count, [](A a, A b) { return static_cast<A>(a && b); });
      break;
    case Reduction::logical_or:
      if constexpr (integral)
        return fold<T>(inputs, out, count, [](A a, A b) { return static_cast<A>(a || b); });
      break;
  }
  refuse(dtype, reduction);
}

template <class T>
T identity(DType dtype, Reduction reduction) {
  using A = Accumulator<T>;
  using Limits = std::numeric_limits<A>;
  constexpr bool ordered = !is_complex<T>;
  const auto highest = [] {
    if constexpr (is_located<T>)
      return no_least<decltype(T::value)>();
    else
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
  };
  const auto lowest = [] {
    if constexpr (is_located<T>)
      return no_greatest<decltype(T::value)>();
    else
      return Limits::has_infinity ? static_cast<A>(-Limits::infinity()) : Limits::lowest();
  };
  switch (reduction) {
    case Reduction::sum:
      if constexpr (!is_located<T>) return static_cast<T>(A(0));
      break;
    case Reduction::product:
      if constexpr (!is_located<T>) return static_cast<T>(A(1));
      break;
    case Reduction::min:
      if constexpr (ordered) return static_cast<T>(highest());
      break;
    case Reduction::max:
      if constexpr (ordered) return static_cast<T>(lowest());
      break;
    case Reduction::logical_and:
      if constexpr (std::is_integral_v<T>) return static_cast<T>(1);
      break;
    case Reduction::logical_or:
      if constexpr (std::is_integral_v<T>) return static_cast<T>(0);
      break;
  }
  refuse(dtype, reduction);
}

// Calls work(T()) for the C++ type of `dtype`.
template <class Work>
void with_type(DType dtype, Work&& work) {
  switch (dtype) {
    case DType::int8: return work(std::int8_t());
    case DType::uint8: return work(std::uint8_t());
    case DType::int16: return work(std::int16_t());
    case DType::uint16: return work(std::uint16_t());
    case DType::int32: return work(std::int32_t());
    case DType::uint32: return work(std::uint32_t());
    case DType::int64: return work(std::int64_t());
    case DType::uint64: return work(std::uint64_t());
    case DType::float16: return work(float16());
    case DType::bfloat16: return work(bfloat16());
    case DType::float32: return work(float());
    case DType::float64: return work(double());
    case DType::complex64: return work(std::complex<float>());
    case DType::complex128: return work(std::complex<double>());
    case DType::boolean: return work(bool());
    case DType::located_int32: return work(Located<std::int32_t>());
    case DType::located_int64: return work(Located<std::int64_t>());
    case DType::located_float32: return work(Located<float>());
    case DType::located_float64: return work(Located<double>());
  }
}

}  // namespace

void combine(DType dtype, Reduction reduction, std::span<const void* const> inputs, void* out,
             std::int64_t count) {
  with_type(dtype, [&]<class T>(T) { combine_as<T>(dtype, reduction, inputs, out, count); });
}

void fill_identity(DType dtype, Reduction reduction, void* out, std::int64_t count) {
  with_type(dtype, [&]<class T>(T) {
    const T value = identity<T>(dtype, reduction);
    std::fill_n(static_cast<T*>(out), count, value);
  });
}

}  // namespace shoal::comm
