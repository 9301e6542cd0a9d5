// SPDX-License-Identifier: Apache-2.0
#include "solver/proximal/kernels.h"

#include <cmath>

#include "shoal/array/distributed_array.h"
#include "shoal/array/simd.h"

namespace shoal::solver::kernels {
namespace {

using array::is_complex;
using array::Real;

template <class T>
SHOAL_INLINE void add_squares_body(const T* x, double* sums, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if constexpr (is_complex<T>) {
      const double re = static_cast<double>(x[i].real()), im = static_cast<double>(x[i].imag());
      sums[i] += re * re + im * im;
    } else {
      sums[i] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    }
  }
}

template <class T>
SHOAL_INLINE void multiply_body(const double* factors, const T* x, T* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if constexpr (is_complex<T>)
      out[i] = T(static_cast<Real<T>>(static_cast<double>(x[i].real()) * factors[i]),
                 static_cast<Real<T>>(static_cast<double>(x[i].imag()) * factors[i]));
    else
      out[i] = static_cast<T>(static_cast<double>(x[i]) * factors[i]);
  }
}

template <class R>
SHOAL_INLINE bool all_between_body(R lower, R upper, const R* x, std::size_t n) {
  int outside = 0;
  for (std::size_t i = 0; i < n; ++i) outside |= (lower <= x[i] && x[i] <= upper) ? 0 : 1;  // (also NaN)
  return outside == 0;
}

template <class R>
SHOAL_INLINE void clamp_body(R lower, R upper, const R* x, R* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const R v = x[i];
    out[i] = v < lower ? lower : (v > upper ? upper : v);  // (NaN stays)
  }
}

}  // namespace

#define SHOAL_PROXIMAL_KERNELS(T)                                                                          \
  SHOAL_CLONES void add_squares(const T* x, double* sums, std::size_t n) { add_squares_body(x, sums, n); } \
  SHOAL_CLONES void multiply(const double* factors, const T* x, T* out, std::size_t n) {                   \
    multiply_body(factors, x, out, n);                                                                     \
  }
SHOAL_PROXIMAL_KERNELS(float)
SHOAL_PROXIMAL_KERNELS(double)
SHOAL_PROXIMAL_KERNELS(std::complex<float>)
SHOAL_PROXIMAL_KERNELS(std::complex<double>)
#undef SHOAL_PROXIMAL_KERNELS

// A fixed order with eight sums, whatever the processor.
SHOAL_CLONES double sum_roots(const double* squares, std::size_t n) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (std::size_t k = 0; k < 8; ++k) sums[k] += std::sqrt(squares[i + k]);
  double rest = 0;
  for (; i < n; ++i) rest += std::sqrt(squares[i]);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest;
}

SHOAL_CLONES void shrink_factors(double t, double* squares, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const double m = std::sqrt(squares[i]);
    squares[i] = m > t ? 1 - t / m : (m <= t ? 0 : m);  // (NaN stays)
  }
}

SHOAL_CLONES void limit_factors(double t, double* squares, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const double m = std::sqrt(squares[i]);
    squares[i] = m > t ? t / m : (m <= t ? 1 : m);  // (NaN stays)
  }
}

#define SHOAL_BOX_KERNELS(R)                                                     \
  SHOAL_CLONES bool all_between(R lower, R upper, const R* x, std::size_t n) {   \
    return all_between_body(lower, upper, x, n);                                 \
  }                                                                              \
  SHOAL_CLONES void clamp(R lower, R upper, const R* x, R* out, std::size_t n) { \
    clamp_body(lower, upper, x, out, n);                                         \
  }
SHOAL_BOX_KERNELS(float)
SHOAL_BOX_KERNELS(double)
#undef SHOAL_BOX_KERNELS

}  // namespace shoal::solver::kernels
