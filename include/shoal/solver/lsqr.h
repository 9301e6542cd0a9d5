// SPDX-License-Identifier: Apache-2.0
// Least squares by bidiagonalisation: the problem of cgls.h, in exact arithmetic with the same iterates, and
// less sensitive to rounding where A is ill-conditioned.
//
//   C. C. Paige and M. A. Saunders, "LSQR: an algorithm for sparse linear equations and sparse least
//   squares", ACM Trans. Math. Software 8, 1982.
//
// Stops as converged by the paper's rules, |A| being the Frobenius norm of what has been seen of A:
//   |b - A x| <= tolerance (|b| + |A| |x|)   or   |A^H r| <= tolerance |A| |r|
// where, with damping, r and A are those of the system with damping I below A. Norms in the history and in
// the result come from the recurrences. With a start x0 the method solves for x - x0, so damping holds x near
// x0 (cgls holds it near 0). Cost of an iteration: A and A^H once, 2 reductions; 3 vectors read or written in
// the range, 8 in the domain.
#pragma once

#include <memory>

#include "shoal/solver/solver.h"

namespace shoal::solver {

template <class T>
struct LsqrOptions {
  int max_iterations = 100;
  double tolerance = 1e-6;
  double damping = 0;
  Callback<T> callback{};
  int show_every = 0;  // as CgOptions
};

template <class T>
std::unique_ptr<Solver<T>> make_lsqr(const AnyOperator<T>& a, const LsqrOptions<T>& options = {});

/// Collective. Neither b nor x0 is changed.
template <class T>
Result<T> lsqr(const AnyOperator<T>& a, const DistributedArray<T>& b, const LsqrOptions<T>& options = {});
template <class T>
Result<T> lsqr(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>& x0,
               const LsqrOptions<T>& options = {});

}  // namespace shoal::solver
