// SPDX-License-Identifier: Apache-2.0
// The smallest and the largest of two values, and a value that remembers where it stands.
//
// A NaN wins against every number, so that it is seen in the result wherever it came from. Of equal
// values (and of two NaNs) that with the smaller location is taken. So the order does not matter.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace shoal {

/// The location of a value that stands nowhere: the result where no rank has an element.
inline constexpr std::int64_t no_location = std::numeric_limits<std::int64_t>::max();

/// Reductions min and max of these give the value and where it is. T: int32, int64, float or double.
template <class T>
struct Located {
  T value{};
  std::int64_t location = no_location;
  friend constexpr bool operator==(const Located&, const Located&) = default;
};

template <class T>
constexpr bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return value != value;
  else
    return false;
}

template <class T>
requires std::is_arithmetic_v<T>
constexpr T least(T a, T b) { return b < a || is_nan(b) ? b : a; }
template <class T>
requires std::is_arithmetic_v<T>
constexpr T greatest(T a, T b) { return a < b || is_nan(b) ? b : a; }

namespace detail {
template <class T>
constexpr Located<T> choose(const Located<T>& a, const Located<T>& b, bool a_before, bool b_before) {
  if (is_nan(a.value) != is_nan(b.value)) return is_nan(a.value) ? a : b;
  if (a_before != b_before) return a_before ? a : b;
  return b.location < a.location ? b : a;
}
}  // namespace detail

template <class T>
constexpr Located<T> least(const Located<T>& a, const Located<T>& b) {
  return detail::choose(a, b, a.value < b.value, b.value < a.value);
}
template <class T>
constexpr Located<T> greatest(const Located<T>& a, const Located<T>& b) {
  return detail::choose(a, b, b.value < a.value, a.value < b.value);
}

/// What changes nothing under least() and greatest().
template <class T>
constexpr Located<T> no_least() {
  using Limits = std::numeric_limits<T>;
  return {Limits::has_infinity ? Limits::infinity() : Limits::max(), no_location};
}
template <class T>
constexpr Located<T> no_greatest() {
  using Limits = std::numeric_limits<T>;
  return {Limits::has_infinity ? -Limits::infinity() : Limits::lowest(), no_location};
}

}  // namespace shoal
