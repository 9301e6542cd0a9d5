// SPDX-License-Identifier: Apache-2.0
// Functions with a proximal operator. All are separable but L2 with an operator and the total variation, so
// their proximal operators are local; values are summed over ranks, replicated elements once.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "shoal/linop/linear_operator.h"
#include "shoal/solver/power_iteration.h"
#include "shoal/solver/proximal/proximal.h"

namespace shoal::solver {

using array::Index;
using array::Real;
using linop::AnyOperator;

// Of any layout.

/// sigma times the number of non-zeros. Not convex: there is no prox_dual.
template <class T>
AnyProximal<T> l0(double sigma = 1);
/// sigma times the sum of magnitudes.
template <class T>
AnyProximal<T> l1(double sigma = 1);
/// 0 where lower <= x <= upper in every element, else infinite. Real elements.
template <class T>
AnyProximal<T> box(double lower, double upper);

/// sigma times the sum over i of sqrt(sum over members k of |x_k[i]|^2), x a stack of members of equal
/// layout. On the gradient of an image it is the isotropic total variation, for methods that take a gradient
/// apart (admm_l2, primal_dual).
template <class T>
AnyProximal<T> l21(double sigma = 1);

/// sigma times the isotropic total variation of an image x: the sum over i of sqrt(sum over members k of
/// |(D x)_k[i]|^2), D a gradient to a stack of members of equal layout.
struct TotalVariation {
  double sigma = 1;

  // prox() is an iteration, each with D and D^H once; every tenth of them once more.
  //   A. Beck and M. Teboulle, "Fast gradient-based algorithms for constrained total variation image
  //   denoising and deblurring problems", 2009.
  /// Ends when the result is known, by the duality gap, to be within tolerance |x| of the minimiser (of float
  /// no nearer than about 1e-4), or after so many iterations. 0: after these.
  double tolerance = 1e-5;
  int iterations = 500;
  /// At most 1 / |D|^2. 0: 0.95 divided by the largest eigenvalue of D^H D, by power iteration when the
  /// function is made.
  double step = 0;
  PowerOptions power{};
  /// Begins where the last call has ended.
  bool warm = true;
};
template <class T>
AnyProximal<T> total_variation(const AnyOperator<T>& gradient, const TotalVariation& options = {});

/// sigma times the sum of the singular values of all blocks of rows times cols elements, which lie one after
/// the other: x has the shape (..., rows, cols), or it is a row of whole blocks. No rank holds a part of a
/// block; else the first use throws invalid_argument.
template <class T>
AnyProximal<T> nuclear(Index rows, Index cols, double sigma = 1);

/// f_0(x_0) + f_1(x_1) + ... over the members of a stack.
template <class T>
AnyProximal<T> separable_sum(std::vector<AnyProximal<T>> functions);

/// sigma / 2 |Op x - b|^2 + alpha re<q, x>, which has a gradient.
enum class L2Solver : std::uint8_t { cgls, cg };
template <class T>
struct L2 {
  std::optional<AnyOperator<T>> op{};      // none: the identity
  std::optional<DistributedArray<T>> b{};  // none: 0
  std::optional<DistributedArray<T>> q{};  // none: 0
  double sigma = 1, alpha = 1;

  // With an operator, prox() is an iteration: CGLS for [sqrt(tau sigma) Op; I] z = [sqrt(tau sigma) b; y],
  // or CG for its normal equations; y = x - tau alpha q.
  L2Solver solver = L2Solver::cgls;
  int iterations = 10;
  double tolerance = 0;
  /// Instead of `iterations`: of the first call of prox() (0), the second, ...; the same on every rank, and
  /// at most `iterations`.
  std::function<int(int)> iterations_of_call{};
  /// Begins at the last result instead of `start` (none: 0).
  bool warm = true;
  std::optional<DistributedArray<T>> start{};
};
/// Copies of the arrays are kept.
template <class T>
AnyProximal<T> l2(const L2<T>& problem);

}  // namespace shoal::solver
