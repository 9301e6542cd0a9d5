// SPDX-License-Identifier: Apache-2.0
// Sparse solutions by thresholding: x that makes J(x) = |b - A x|^2 / 2 + epsilon penalty(x) small, where
// the penalty is |x|_1 (soft), the number of non-zeros (hard) or the sum of sqrt|x_i| (half). With a
// sparsifying operator S, x = S c for coefficients c, and the penalty is theirs.
//
//   z = x + step A^H (b - A x);  c = threshold(S^H z);  x = S c
//
//   I. Daubechies, M. Defrise, C. De Mol, "An iterative thresholding algorithm for linear inverse problems",
//   2004 (ISTA; S orthonormal).
//   A. Beck and M. Teboulle, "A fast iterative shrinkage-thresholding algorithm", 2009 (FISTA).
//   T. Blumensath and M. Davies, "Iterative thresholding for sparse approximations", 2008 (hard).
//   Z. Xu, X. Chang, F. Xu, H. Zhang, "L1/2 regularization: a thresholding representation theory", 2012
//   (half).
//
// Thresholding is the exact minimiser of |z - x|^2 / 2 + step epsilon penalty(x), element by element; of
// complex elements the phase is kept. (pylops-mpi thresholds with half as much: its eps is twice this
// epsilon.)
//
// Cost of an iteration, of both methods: A and A^H once (FISTA's residual at its extrapolated point follows
// from two residuals), S and S^H once, 1 reduction; vectors read or written without S: 5 in the range, 7 in
// the domain (ISTA 4 and 6).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "shoal/solver/power_iteration.h"
#include "shoal/solver/solver.h"

namespace shoal::solver {

enum class Threshold : std::uint8_t { soft, hard, half };

template <class T>
struct IstaOptions {
  int max_iterations = 100;
  double epsilon = 0.1;
  Threshold threshold = Threshold::soft;
  std::optional<AnyOperator<T>> sparsifier{};  // S, from coefficients to the domain of A
  /// At most 1 / |A|^2. 0: 0.95 divided by the largest eigenvalue of A^H A, which is found when the solver is
  /// made by a power iteration with `power` (whose estimate comes from below).
  double step = 0;
  PowerOptions power{};
  /// Factors of epsilon in each iteration's threshold; the last one holds on. None: 1. J has epsilon itself.
  std::vector<double> decay{};

  // Converged where one of these holds, and `decay` has come to its last factor.
  double tolerance = 1e-10;    // |x - x before| <= tolerance |x|
  double cost_tolerance = -1;  // |J - J before| <= cost_tolerance J before; negative: not asked
  /// Diverging where |b - A x| exceeds so many times the least that it was; 1: where it grows. 0: never.
  double growth_limit = 0;

  Callback<T> callback{};
  int show_every = 0;  // as CgOptions
};

template <class T>
std::unique_ptr<Solver<T>> make_ista(const AnyOperator<T>& a, const IstaOptions<T>& options = {});
template <class T>
std::unique_ptr<Solver<T>> make_fista(const AnyOperator<T>& a, const IstaOptions<T>& options = {});

/// Collective. Neither b nor x0 is changed. The history holds J.
template <class T>
Result<T> ista(const AnyOperator<T>& a, const DistributedArray<T>& b, const IstaOptions<T>& options = {});
template <class T>
Result<T> ista(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>& x0,
               const IstaOptions<T>& options = {});
template <class T>
Result<T> fista(const AnyOperator<T>& a, const DistributedArray<T>& b, const IstaOptions<T>& options = {});
template <class T>
Result<T> fista(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>& x0,
                const IstaOptions<T>& options = {});

}  // namespace shoal::solver
