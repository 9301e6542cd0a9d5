// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients for A x = b, A Hermitian and definite (positive or negative).
//
//   M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear systems", 1952.
//   P. Ghysels and W. Vanroose, "Hiding global synchronization latency in the preconditioned Conjugate
//   Gradient algorithm", Parallel Computing 40, 2014 (pipelined).
//
// Stops as converged where |b - A x| <= tolerance |b|, so that the scale of A and b does not matter;
// breakdown where p^H A p is zero or changes its sign.
#pragma once

#include <memory>

#include "shoal/solver/solver.h"

namespace shoal::solver {

/// Cost of an iteration: applications of A, reductions (each one all_reduce), and vectors that are read or
/// written besides A, of which each is local_size * sizeof(T) bytes.
enum class Variant : std::uint8_t {
  standard,   // A once, 2 reductions, 10 vectors; with a stencil, which does on its way what it can, 9 with
              // A's
  pipelined,  // A once, 1 reduction while A is applied, 13 vectors; four more A every replace_every
};

template <class T>
struct CgOptions {
  int max_iterations = 100;
  double tolerance = 1e-6;
  Variant variant = Variant::standard;
  /// Pipelined: after so many iterations residual and search direction are computed anew, which keeps the
  /// recurrences, whose rounding errors grow faster than the standard ones', near what they stand for. 0:
  /// never.
  int replace_every = 50;
  Callback<T> callback{};
  /// Rank 0 reports progress on the error output: on a terminal by one line that is updated, else by a line
  /// every so many iterations. 0: nothing.
  int show_every = 0;
};

template <class T>
std::unique_ptr<Solver<T>> make_cg(const AnyOperator<T>& a, const CgOptions<T>& options = {});

/// Collective. Neither b nor x0 is changed.
template <class T>
Result<T> cg(const AnyOperator<T>& a, const DistributedArray<T>& b, const CgOptions<T>& options = {});
template <class T>
Result<T> cg(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>& x0,
             const CgOptions<T>& options = {});

}  // namespace shoal::solver
