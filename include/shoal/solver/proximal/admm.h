// SPDX-License-Identifier: Apache-2.0
// ADMM with a least-squares term: x that makes |b - Op x|^2 / 2 + g(A x) small, g with a proximal operator.
//
//   x = argmin |b - Op x|^2 / 2 + |A x - (z - u)|^2 / (2 tau);  z = prox of tau g at A x + u;  u += A x - z
//
//   S. Boyd, N. Parikh, E. Chu, B. Peleato, J. Eckstein, "Distributed optimization and statistical learning
//   via the alternating direction method of multipliers", 2011 (scaled form, section 3.1.1).
//
// The first step is CGLS on [sqrt(tau) Op; A], begun at the last x. Cost of an iteration: that of
// inner_iterations + 1 iterations of CGLS with both operators (and Op once, for the history), 1 reduction, 8
// vectors of A's range read or written.
#pragma once

#include "shoal/linop/linear_operator.h"
#include "shoal/solver/proximal/method.h"

namespace shoal::solver {

using linop::AnyOperator;

template <class T>
struct AdmmL2Options {
  int max_iterations = 10;
  /// Any positive number converges; it weighs |A x - z| against the objective.
  double tau = 1;
  int inner_iterations = 10;
  double inner_tolerance = 0;
  /// z before x.
  bool g_first = false;
  /// Converged where |A x - z| and |z - z before| are at most tolerance |z|.
  double tolerance = 1e-10;
  Callback<T> callback{};
  int show_every = 0;  // as CgOptions
};

/// A copy of b is kept. residual_norm: |A x - z|. The history holds |b - Op x|^2 / 2 + g(z); auxiliary is z,
/// which begins at A x0.
template <class T>
std::unique_ptr<ProximalMethod<T>> make_admm_l2(const AnyProximal<T>& g, const AnyOperator<T>& op,
                                                const DistributedArray<T>& b, const AnyOperator<T>& a,
                                                const AdmmL2Options<T>& options = {});

/// Collective. Neither b, x0 nor z0 is changed.
template <class T>
ProximalResult<T> admm_l2(const AnyProximal<T>& g, const AnyOperator<T>& op, const DistributedArray<T>& b,
                          const AnyOperator<T>& a, const DistributedArray<T>& x0,
                          const AdmmL2Options<T>& options = {});
template <class T>
ProximalResult<T> admm_l2(const AnyProximal<T>& g, const AnyOperator<T>& op, const DistributedArray<T>& b,
                          const AnyOperator<T>& a, const DistributedArray<T>& x0,
                          const DistributedArray<T>& z0, const AdmmL2Options<T>& options = {});

}  // namespace shoal::solver
