// SPDX-License-Identifier: Apache-2.0
// Primal-dual: x that makes f(x) + g(A x) + re<l, x> small, f and g convex with proximal operators.
//
//   y = prox of mu g* at y + mu A x';  x_new = prox of tau f at x - tau (A^H y + l);
//   x' = x_new + theta (x_new - x)
//
//   A. Chambolle and T. Pock, "A first-order primal-dual algorithm for convex problems with applications to
//   imaging", 2011 (algorithm 1).
//
// It converges for theta = 1 where tau mu |A|^2 < 1. Cost of an iteration: A, A^H and both proximal operators
// once, 1 reduction; 8 vectors read or written in the domain, 8 in the range.
#pragma once

#include <vector>

#include "shoal/linop/linear_operator.h"
#include "shoal/solver/power_iteration.h"
#include "shoal/solver/proximal/method.h"

namespace shoal::solver {

using linop::AnyOperator;

template <class T>
struct PrimalDualOptions {
  int max_iterations = 100;
  /// Of each iteration; the last one holds on. None: 0.95 / (|A|^2 times the other's largest), or both 0.95 /
  /// |A|; |A| by power iteration when the method is made.
  std::vector<double> tau{}, mu{};
  PowerOptions power{};
  double theta = 1;
  /// y before x, as above.
  bool g_first = true;
  std::optional<DistributedArray<T>> linear{};  // l; none: 0

  /// Converged where, in the norm sqrt(|x|^2 / tau + |y|^2 / mu), the step of (x, y) is at most tolerance
  /// times (x, y).
  double tolerance = 1e-10;
  Callback<T> callback{};
  int show_every = 0;  // as CgOptions
};

/// residual_norm: the step of (x, y) in that norm. auxiliary is y, which begins at 0.
template <class T>
std::unique_ptr<ProximalMethod<T>> make_primal_dual(const AnyProximal<T>& f, const AnyProximal<T>& g,
                                                    const AnyOperator<T>& a,
                                                    const PrimalDualOptions<T>& options = {});

/// Collective. Neither x0 nor y0 is changed.
template <class T>
ProximalResult<T> primal_dual(const AnyProximal<T>& f, const AnyProximal<T>& g, const AnyOperator<T>& a,
                              const DistributedArray<T>& x0, const PrimalDualOptions<T>& options = {});
template <class T>
ProximalResult<T> primal_dual(const AnyProximal<T>& f, const AnyProximal<T>& g, const AnyOperator<T>& a,
                              const DistributedArray<T>& x0, const DistributedArray<T>& y0,
                              const PrimalDualOptions<T>& options = {});

}  // namespace shoal::solver
