// SPDX-License-Identifier: Apache-2.0
// Loops over local elements: plain functions of real numbers, float and double. Complex elements are passed
// as pairs of reals, and `n` counts reals. Sums are in double with a fixed order, whatever the processor.
#pragma once

#include <complex>
#include <cstddef>

namespace shoal::array::kernels {

/// Sums of products of complex elements taken as pairs: of x[k] y[k] and of x[k] y[k ^ 1], over even and odd
/// k.
struct PairProducts {
  double even = 0, odd = 0, crossed_even = 0, crossed_odd = 0;
};
/// The largest or smallest magnitude, and whether there was a NaN (which it does not count).
struct Extreme {
  double value = 0;
  bool nan = false;
};

#define SHOAL_ARRAY_KERNELS(R)                                                                              \
  double dot(const R* x, const R* y, std::size_t n);                                                        \
  PairProducts dot_pairs(const R* x, const R* y, std::size_t n);                                            \
  double sum_squares(const R* x, std::size_t n);                                                            \
  /* The squares of factor * x. */                                                                          \
  double sum_squares_scaled(double factor, const R* x, std::size_t n);                                      \
  double sum_magnitudes(const R* x, std::size_t n);                                                         \
  Extreme largest_magnitude(const R* x, std::size_t n);                                                     \
  /* out = a x + b y, past the caches when `streaming`; `out` may be x or y. */                             \
  void linear(R a, const R* x, R b, const R* y, R* out, std::size_t n, bool streaming);                     \
  void linear_pairs(R a, const R* x, std::complex<R> b, const R* y, R* out, std::size_t n, bool streaming); \
  void linear_pairs(std::complex<R> a, const R* x, std::complex<R> b, const R* y, R* out, std::size_t n,    \
                    bool streaming);                                                                        \
  /* y += a x; the sum of the new y's squares */                                                            \
  double axpy_norm2(R a, const R* x, R* y, std::size_t n);                                                  \
  double axpy_norm2_pairs(std::complex<R> a, const R* x, R* y, std::size_t n);
SHOAL_ARRAY_KERNELS(float)
SHOAL_ARRAY_KERNELS(double)
#undef SHOAL_ARRAY_KERNELS

}  // namespace shoal::array::kernels
