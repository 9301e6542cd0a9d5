// SPDX-License-Identifier: Apache-2.0
// Expected values and comparisons of the conformance cases.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/conformance.h"
#include "shoal/base/error.h"
#include "shoal/comm/communicator.h"

namespace shoal::comm::conformance {

template <class T>
std::string printed(const T& value) {
  if constexpr (requires { static_cast<float>(value); })
    return fmt::format("{}", static_cast<double>(static_cast<float>(value)));
  else
    return fmt::format("({}, {})", value.real(), value.imag());
}

/// The message is made only when it is needed: there are millions of comparisons.
template <class T, class... Arguments>
void expect_equal(const T& actual, const T& expected, fmt::format_string<Arguments...> what,
                  Arguments&&... arguments) {
  ++comparisons();
  if (!(actual == expected))
    throw std::runtime_error(fmt::format("{}: {} instead of {}",
                                         fmt::format(what, std::forward<Arguments>(arguments)...),
                                         printed(actual), printed(expected)));
}

inline void expect(bool condition, const std::string& what) {
  ++comparisons();
  if (!condition) throw std::runtime_error(what);
}

/// `says` is a part of the error's text.
template <class Call>
void expect_error(ErrorCode code, Call&& call, const std::string& what, const std::string& says = "") {
  ++comparisons();
  try {
    call();
  } catch (const Error& error) {
    if (error.code() == code && std::string(error.what()).find(says) != std::string::npos) return;
    throw std::runtime_error(fmt::format("{}: error {} ({})", what, to_string(error.code()), error.what()));
  }
  throw std::runtime_error(what + ": no error");
}

// Small enough for int8 and for exact sums in every type: 1 + (7 rank + i) mod 5.
template <class T>
T value(Rank rank, std::size_t i) {
  return static_cast<T>(static_cast<float>(1 + (7 * static_cast<std::size_t>(rank) + i) % 5));
}

template <class T>
std::vector<T> values(Rank rank, std::size_t n) {
  std::vector<T> result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = value<T>(rank, i);
  return result;
}

inline double reduced(Reduction reduction, int ranks, std::size_t i) {
  double result = value<float>(0, i);
  for (Rank r = 1; r < ranks; ++r) {
    const double v = value<float>(r, i);
    switch (reduction) {
      case Reduction::sum: result += v; break;
      case Reduction::product: result *= v; break;
      case Reduction::min: result = std::min(result, v); break;
      case Reduction::max: result = std::max(result, v); break;
      default: break;
    }
  }
  return result;
}

template <class T>
T from_double(double v) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::int64_t>(v));
  else
    return static_cast<T>(static_cast<float>(v));
}

}  // namespace shoal::comm::conformance
