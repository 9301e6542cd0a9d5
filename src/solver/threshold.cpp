// SPDX-License-Identifier: Apache-2.0
#include "solver/threshold.h"

#include <cmath>
#include <numbers>

#include "shoal/array/simd.h"
#include "solver/run.h"

namespace shoal::solver {
namespace {

using array::is_complex;
using array::Real;

template <class T>
SHOAL_INLINE double magnitude(const T& x) {
  if constexpr (is_complex<T>) {
    const double re = static_cast<double>(x.real()), im = static_cast<double>(x.imag());
    return std::sqrt(re * re + im * im);
  } else {
    return std::fabs(static_cast<double>(x));
  }
}

// x with its magnitude multiplied.
template <class T>
SHOAL_INLINE void multiply(T& x, double factor) {
  if constexpr (is_complex<T>)
    x = T(static_cast<Real<T>>(static_cast<double>(x.real()) * factor),
          static_cast<Real<T>>(static_cast<double>(x.imag()) * factor));
  else
    x = static_cast<T>(static_cast<double>(x) * factor);
}

template <class T>
SHOAL_INLINE void soft_body(double t, T* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const double m = magnitude(x[i]);
    multiply(x[i], m > t ? 1 - t / m : (m <= t ? 0 : m));  // (NaN stays)
  }
}

template <class T>
SHOAL_INLINE void hard_body(double t, T* x, std::size_t n) {
  const double least = std::sqrt(2 * t);
  for (std::size_t i = 0; i < n; ++i)
    if (magnitude(x[i]) <= least) x[i] = T(0);
}

// Xu and others, 2012, theorem 1, for lambda = 2 t.
template <class T>
void half_body(double t, T* x, std::size_t n) {
  const double least = 1.5 * std::pow(t, 2.0 / 3.0);  // 54^(1/3) / 4 * (2 t)^(2/3)
  for (std::size_t i = 0; i < n; ++i) {
    const double m = magnitude(x[i]);
    if (m <= least) {
      x[i] = T(0);
    } else {
      const double angle = std::acos(t / 4 * std::pow(m / 3, -1.5));
      multiply(x[i], 2.0 / 3.0 * (1 + std::cos(2.0 / 3.0 * (std::numbers::pi - angle))));
    }
  }
}

// A fixed order with eight sums, whatever the processor.
template <class T, class Term>
SHOAL_INLINE double sum_of(const T* x, std::size_t n, const Term& term) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (std::size_t k = 0; k < 8; ++k) sums[k] += term(x[i + k]);
  double rest = 0;
  for (; i < n; ++i) rest += term(x[i]);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest;
}

// The loops that are worth it, for several instruction sets.
#define SHOAL_THRESHOLD_LOOPS(T)                                                       \
  SHOAL_CLONES void soft(double t, T* x, std::size_t n) { soft_body(t, x, n); }        \
  SHOAL_CLONES void hard(double t, T* x, std::size_t n) { hard_body(t, x, n); }        \
  SHOAL_CLONES double sum_magnitudes(const T* x, std::size_t n) {                      \
    return sum_of(                                                                     \
        x, n, [](const T& v) __attribute__((always_inline)) { return magnitude(v); }); \
  }
SHOAL_SOLVER_ELEMENTS(SHOAL_THRESHOLD_LOOPS)
#undef SHOAL_THRESHOLD_LOOPS

}  // namespace

template <class T>
void apply_threshold(Threshold kind, double t, T* x, std::size_t n) {
  switch (kind) {
    case Threshold::soft: return soft(t, x, n);
    case Threshold::hard: return hard(t, x, n);
    case Threshold::half: return half_body(t, x, n);
  }
}

template <class T>
double penalty(Threshold kind, const T* x, std::size_t n) {
  switch (kind) {
    case Threshold::soft: return sum_magnitudes(x, n);
    case Threshold::hard: return sum_of(x, n, [](const T& v) { return v == T(0) ? 0.0 : 1.0; });
    case Threshold::half: return sum_of(x, n, [](const T& v) { return std::sqrt(magnitude(v)); });
  }
  return 0;
}

#define SHOAL_INSTANTIATE(T)                                         \
  template void apply_threshold(Threshold, double, T*, std::size_t); \
  template double penalty(Threshold, const T*, std::size_t);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
