// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients for least squares: x that makes |b - A x|^2 + damping^2 |x|^2 least, for any A.
//
//   A. Björck, T. Elfving and Z. Strakos, "Stability of conjugate gradient and Lanczos methods for linear
//   least squares problems", SIAM J. Matrix Anal. Appl. 19, 1998 (CGLS1).
//
// Stops as converged where the system is solved or the gradient is, as by C. C. Paige and M. A. Saunders
// ("LSQR", 1982):
//   |b - A x| <= tolerance |b|   or   |A^H (b - A x) - damping^2 x| <= tolerance |A^H b|.
// The history holds sqrt(|b - A x|^2 + damping^2 |x|^2).
//
// The pipelined variant carries s = A^H r and z = A^H A p by recurrences, and computes u = A s; from
// |A p|^2 = |u|^2 - beta gamma / alpha, which conjugacy gives, both sums of an iteration are known from s and
// u, and travel while A^H u is computed. What the recurrences lose, |s - A^H (b - A x)|, grows by about the
// precision times |A|^2 |x| an iteration; it is thrown away every replace_every iterations.
#pragma once

#include "shoal/solver/cg.h"

namespace shoal::solver {

/// Cost of an iteration: A and A^H once; standard: 2 reductions; pipelined: 1, and two more A and A^H every
/// replace_every iterations. Vectors read or written besides: 4 in the range and 7 in the domain (damped: 9);
/// pipelined: 6 and 9 (damped: 12). Standard with stencils, which do that on their way: 11 in all, with what
/// A and A^H read and write.
template <class T>
struct CglsOptions {
  int max_iterations = 100;
  double tolerance = 1e-6;
  double damping = 0;
  Variant variant = Variant::standard;
  int replace_every = 50;
  Callback<T> callback{};
  int show_every = 0;  // as CgOptions
};

template <class T>
std::unique_ptr<Solver<T>> make_cgls(const AnyOperator<T>& a, const CglsOptions<T>& options = {});

/// Collective. Neither b nor x0 is changed.
template <class T>
Result<T> cgls(const AnyOperator<T>& a, const DistributedArray<T>& b, const CglsOptions<T>& options = {});
template <class T>
Result<T> cgls(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>& x0,
               const CglsOptions<T>& options = {});

}  // namespace shoal::solver
