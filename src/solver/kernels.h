// SPDX-License-Identifier: Apache-2.0
// Loops over local elements, each a fused step of a method: plain functions of real numbers, float and
// double. Complex elements are pairs of reals, since all scalars of the methods are real. Sums are in double
// with a fixed order, the same on every processor.
#pragma once

#include <cstddef>

namespace shoal::solver::kernels {

/// The sums over two products.
struct TwoSums {
  double first = 0, second = 0;
};

#define SHOAL_SOLVER_KERNELS(R)                                                                              \
  double dot(const R* x, const R* y, std::size_t n);                                                         \
  double sum_squares(const R* x, std::size_t n);                                                             \
  /* y = a x + b y */                                                                                        \
  void axpby(R a, const R* x, R b, R* y, std::size_t n);                                                     \
  /* The same; the sum of the new y's squares. */                                                            \
  double axpby_norm2(R a, const R* x, R b, R* y, std::size_t n);                                             \
  /* y += a x; the sum of the squares of f y. */                                                             \
  double axpy_scaled_norm2(R a, const R* x, R* y, double f, std::size_t n);                                  \
  /* x += c p; p = r + b p */                                                                                \
  void cg_update(R c, R* x, const R* r, R b, R* p, std::size_t n);                                           \
  /* z = q + b z; s = w + b s; p = r + b p; x += c p; r -= a s; w -= a z; sums of r r and w r. */            \
  TwoSums pipelined_cg_update(R b, R a, R c, const R* q, R* z, R* s, R* p, R* x, R* r, R* w, std::size_t n); \
  /* q = u + b q; r -= a q; the sum of r's squares. */                                                       \
  double pipelined_residual_update(R b, R a, const R* u, R* q, R* r, std::size_t n);                         \
  /* p = s + b p; z = v + b z; x += c p; s -= a z; sums of s s and (f x)^2. */                               \
  TwoSums pipelined_gradient_update(R b, R a, R c, const R* v, R* z, R* s, R* p, R* x, double f,             \
                                    std::size_t n);                                                          \
  /* x += c w; w = a v + b w */                                                                              \
  void lsqr_update(R c, R* x, R a, const R* v, R b, R* w, std::size_t n);                                    \
  /* t = b - ax; residual <- t and extrapolated = t + m (t - old residual); the sum of t's squares. */       \
  double ista_residuals(const R* b, const R* ax, R m, R* residual, R* extrapolated, std::size_t n);          \
  /* y = g + m (g - x); x = g; sums of the squares of g - x and of g. `y` may be `x`. */                     \
  TwoSums extrapolate(R m, const R* g, R* x, R* y, std::size_t n);
SHOAL_SOLVER_KERNELS(float)
SHOAL_SOLVER_KERNELS(double)
#undef SHOAL_SOLVER_KERNELS

}  // namespace shoal::solver::kernels
