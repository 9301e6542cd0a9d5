// SPDX-License-Identifier: Apache-2.0
// Loops over elements that the functions need beside the thresholds.
#pragma once

#include <complex>
#include <cstddef>

namespace shoal::solver::kernels {

#define SHOAL_PROXIMAL_KERNELS(T)                            \
  /* sums[i] += |x[i]|^2 */                                  \
  void add_squares(const T* x, double* sums, std::size_t n); \
  /* out[i] = factors[i] x[i]; `out` may be `x`. */          \
  void multiply(const double* factors, const T* x, T* out, std::size_t n);
SHOAL_PROXIMAL_KERNELS(float)
SHOAL_PROXIMAL_KERNELS(double)
SHOAL_PROXIMAL_KERNELS(std::complex<float>)
SHOAL_PROXIMAL_KERNELS(std::complex<double>)
#undef SHOAL_PROXIMAL_KERNELS

/// The sum of square roots.
double sum_roots(const double* squares, std::size_t n);
/// Squares s become max(0, 1 - t / sqrt(s)).
void shrink_factors(double t, double* squares, std::size_t n);
/// Squares s become min(1, t / sqrt(s)).
void limit_factors(double t, double* squares, std::size_t n);

bool all_between(float lower, float upper, const float* x, std::size_t n);
bool all_between(double lower, double upper, const double* x, std::size_t n);
/// `out` may be `x`.
void clamp(float lower, float upper, const float* x, float* out, std::size_t n);
void clamp(double lower, double upper, const double* x, double* out, std::size_t n);

}  // namespace shoal::solver::kernels
