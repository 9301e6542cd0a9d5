// SPDX-License-Identifier: Apache-2.0
// What all norms share: magnitudes, powers and roots, and when a sum of powers has to be done again, scaled.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "shoal/array/distributed_array.h"
#include "shoal/base/error.h"

namespace shoal::array {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
double magnitude(const T& value) {
  if constexpr (is_complex<T>)
    return std::hypot(static_cast<double>(value.real()), static_cast<double>(value.imag()));
  else
    return std::fabs(static_cast<double>(value));
}

inline double power(double magnitude, double p) {
  if (p == 1) return magnitude;
  if (p == 2) return magnitude * magnitude;
  return std::pow(magnitude, p);
}

inline double root(double sum, double p) {
  if (p == 1) return sum;
  if (p == 2) return std::sqrt(sum);
  return std::pow(sum, 1 / p);
}

/// Whether a sum of powers lost nothing that matters to underflow, and did not overflow: then terms that
/// vanished (below 1e-308 each) are less than its rounding.
inline bool is_safe_sum(double sum) { return sum >= 1e-280 && sum < infinity; }

/// A power of two that brings a finite `scale` > 0 near 1.
inline double scaling_factor(double scale) { return std::ldexp(1.0, std::min(1000, -std::ilogb(scale))); }

/// The kind, where infinite p are the largest and smallest magnitude.
inline Norm::Kind checked_kind(Norm which) {
  if (which.kind != Norm::Kind::p) return which.kind;
  if (which.p == 0 || std::isnan(which.p))
    fail(ErrorCode::invalid_argument, "a norm of p = 0 or NaN: norm_zero counts the non-zeros");
  if (std::isinf(which.p)) return which.p > 0 ? Norm::Kind::largest : Norm::Kind::smallest;
  return Norm::Kind::p;
}

}  // namespace shoal::array
