// SPDX-License-Identifier: Apache-2.0
// Proximal gradient: x that makes f(x) + epsilon g(x) small, f with a gradient, g with a proximal operator.
//
//   x_new = prox of tau epsilon g at y - tau grad f(y);  y = x_new + m (x_new - x)
//
//   A. Beck and M. Teboulle, "A fast iterative shrinkage-thresholding algorithm", 2009 (fista: m = (t - 1) /
//   t_new; backtracking).
//   L. Vandenberghe, lecture notes on fast proximal gradient methods (m = k / (k + 3), k = 0, 1, ...).
//
// Cost of an iteration with f an L2 of an operator: Op and Op^H once, accelerated Op once more (for the
// history); 1 reduction, and one more for each step that backtracking tries. 7 vectors are read or written
// besides.
#pragma once

#include <vector>

#include "shoal/solver/power_iteration.h"
#include "shoal/solver/proximal/method.h"

namespace shoal::solver {

enum class Acceleration : std::uint8_t { none, fista, vandenberghe };

template <class T>
struct ProximalGradientOptions {
  int max_iterations = 100;
  /// Of each iteration; the last one holds on. The history has the same.
  std::vector<double> epsilon{1};
  /// At most 1 / L, L the Lipschitz constant of f's gradient. 0: 0.95 / L for a quadratic f, L by power
  /// iteration when the method is made; with backtracking 1.
  double tau = 0;
  PowerOptions power{};
  Acceleration acceleration = Acceleration::none;
  /// tau is multiplied by `shrink`, at most `max_backtracks` times an iteration, until f lies below its
  /// quadratic bound, and stays so.
  bool backtracking = false;
  double shrink = 0.5;
  int max_backtracks = 100;
  /// x_new = x + relaxation (prox(...) - x); other than 1 without acceleration alone.
  double relaxation = 1;

  // Converged where one of these holds.
  double tolerance = 1e-10;    // |x_new - x| <= tolerance |x_new|
  double cost_tolerance = -1;  // |J - J before| <= cost_tolerance |J before|; negative: not asked
  Callback<T> callback{};
  int show_every = 0;  // as CgOptions
};

/// For x of `layout`. Breakdown: backtracking found no step. residual_norm: |x_new - x|.
template <class T>
std::unique_ptr<ProximalMethod<T>> make_proximal_gradient(const comm::Communicator& communicator,
                                                          const Layout& layout, const AnyProximal<T>& f,
                                                          const AnyProximal<T>& g,
                                                          const ProximalGradientOptions<T>& options = {});

/// Collective. x0 is not changed.
template <class T>
ProximalResult<T> proximal_gradient(const AnyProximal<T>& f, const AnyProximal<T>& g,
                                    const DistributedArray<T>& x0,
                                    const ProximalGradientOptions<T>& options = {});

}  // namespace shoal::solver
