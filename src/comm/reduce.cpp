// SPDX-License-Identifier: Apache-2.0
#include "comm/reduce.h"

#include <algorithm>
#include <complex>
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
inline constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Half precision accumulates in float; narrow integers in themselves (wrap-around is what MPI does).
template <class T>
using Accumulator = std::conditional_t<is_half<T>, float, T>;

template <class T, class Apply>
void fold(std::span<const void* const> inputs, void* out, std::int64_t count, Apply apply) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto value = static_cast<Accumulator<T>>(static_cast<const T*>(inputs[0])[i]);
    for (std::size_t r = 1; r < inputs.size(); ++r)
      value = apply(value, static_cast<Accumulator<T>>(static_cast<const T*>(inputs[r])[i]));
    static_cast<T*>(out)[i] = static_cast<T>(value);
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
    case Reduction::sum: return fold<T>(inputs, out, count, [](A a, A b) { return static_cast<A>(a + b); });
    case Reduction::product:
      return fold<T>(inputs, out, count, [](A a, A b) { return static_cast<A>(a * b); });
    case Reduction::min:
      if constexpr (ordered) return fold<T>(inputs, out, count, [](A a, A b) { return std::min(a, b); });
      break;
    case Reduction::max:
      if constexpr (ordered) return fold<T>(inputs, out, count, [](A a, A b) { return std::max(a, b); });
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

}  // namespace

void combine(DType dtype, Reduction reduction, std::span<const void* const> inputs, void* out,
             std::int64_t count) {
  switch (dtype) {
    case DType::int8: return combine_as<std::int8_t>(dtype, reduction, inputs, out, count);
    case DType::uint8: return combine_as<std::uint8_t>(dtype, reduction, inputs, out, count);
    case DType::int16: return combine_as<std::int16_t>(dtype, reduction, inputs, out, count);
    case DType::uint16: return combine_as<std::uint16_t>(dtype, reduction, inputs, out, count);
    case DType::int32: return combine_as<std::int32_t>(dtype, reduction, inputs, out, count);
    case DType::uint32: return combine_as<std::uint32_t>(dtype, reduction, inputs, out, count);
    case DType::int64: return combine_as<std::int64_t>(dtype, reduction, inputs, out, count);
    case DType::uint64: return combine_as<std::uint64_t>(dtype, reduction, inputs, out, count);
    case DType::float16: return combine_as<float16>(dtype, reduction, inputs, out, count);
    case DType::bfloat16: return combine_as<bfloat16>(dtype, reduction, inputs, out, count);
    case DType::float32: return combine_as<float>(dtype, reduction, inputs, out, count);
    case DType::float64: return combine_as<double>(dtype, reduction, inputs, out, count);
    case DType::complex64: return combine_as<std::complex<float>>(dtype, reduction, inputs, out, count);
    case DType::complex128: return combine_as<std::complex<double>>(dtype, reduction, inputs, out, count);
    case DType::boolean: return combine_as<bool>(dtype, reduction, inputs, out, count);
  }
}

}  // namespace shoal::comm
