// SPDX-License-Identifier: Apache-2.0
// Functions with a proximal operator. All are separable but L2 with an operator, so their proximal operators
// are local; values are summed over ranks, replicated elements once.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "shoal/linop/linear_operator.h"
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
/// layout. On the gradient of an image it is the isotropic total variation.
template <class T>
AnyProximal<T> l21(double sigma = 1);

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
