// SPDX-License-Identifier: Apache-2.0
#include "shoal/solver/proximal/primal_dual.h"

#include <cmath>

#include <fmt/format.h>

#include "shoal/base/error.h"
#include "solver/monitor.h"
#include "solver/proximal/support.h"
#include "solver/run.h"

namespace shoal::solver {
namespace {

template <class T>
class PrimalDual final : public ProximalMethod<T> {
 public:
  using Array = DistributedArray<T>;

  PrimalDual(const AnyProximal<T>& f, const AnyProximal<T>& g, const AnyOperator<T>& a,
             const PrimalDualOptions<T>& options)
      : ProximalMethod<T>(
            {{Array(a.communicator(), a.domain())}, Array(a.communicator(), a.range())},
            std::make_unique<Monitor<T>>(a.communicator(), "primal-dual", options.max_iterations,
                                         options.callback, options.show_every)),
        f_(f),
        g_(g),
        a_(a),
        options_(options),
        domain_(a.domain(), a.communicator().rank()),
        range_(a.range(), a.communicator().rank()),
        v_(a.communicator(), a.domain()),
        ax_(a.communicator(), a.range()),
        ahead_(ax_),
        w_(ax_) {}

 private:
  using ProximalMethod<T>::result_;
  using ProximalMethod<T>::monitor_;

  Array& y() { return *result_.auxiliary; }

  void start(bool y_given) override {
    sum_.use(result_.x.reduction_communicator());
    if (!y_given) y().fill(T(0));
    a_.apply(result_.x, ax_);
    ahead_ = ax_;
    const LocalSum here = this->cost();
    const auto [cost] = sum_(here);
    monitor_->begin(result_, {.cost = cost,
                              .suspect = &result_.x,
                              .constrained = true,
                              .not_finite_here = std::isnan(here.split + here.replicated)});
  }

  void iterate() override {
    const double tau = of_iteration(options_.tau, result_.iterations),
                 mu = of_iteration(options_.mu, result_.iterations);
    LocalSums y_step, x_step;
    if (options_.g_first) y_step = update_y(mu);
    x_step = update_x(tau);
    if (!options_.g_first) y_step = update_y(mu);
    const auto [step2, size2, cost] = sum_(1 / tau * x_step.first + 1 / mu * y_step.first,
                                           1 / tau * x_step.second + 1 / mu * y_step.second, this->cost());
    monitor_->end(result_, {.residual = std::sqrt(step2),
                            .cost = cost,
                            .converged = step2 <= options_.tolerance * options_.tolerance * size2,
                            .suspect = &result_.x,
                            .constrained = true});
  }

  // y = prox of mu g* at y + mu A x', x' being extrapolated. Both return the sums of squares of the step and
  // of what it leads to.
  LocalSums update_y(double mu) {
    range_.axpby(1, y(), mu, ahead_);
    g_.prox_dual(ahead_, mu, w_);
    return move_to(range_, w_, y());
  }

  // x = prox of tau f at x - tau (A^H y + l); A x' follows from A x now and before.
  LocalSums update_x(double tau) {
    a_.apply_adjoint(y(), v_);
    if (options_.linear) domain_.axpby(1, *options_.linear, 1, v_);
    domain_.axpby(1, result_.x, -tau, v_);
    f_.prox(v_, tau, v_);
    const LocalSums sums = move_to(domain_, v_, result_.x);
    a_.apply(result_.x, w_);
    extrapolate(range_, options_.theta, w_, ax_, ahead_);
    return sums;
  }

  LocalSum cost() {
    LocalSum sum = f_.local_value(result_.x) + g_.local_value(ax_);
    if (options_.linear) sum += domain_.dot(*options_.linear, result_.x);
    return sum;
  }

  AnyProximal<T> f_, g_;
  AnyOperator<T> a_;
  PrimalDualOptions<T> options_;
  Space<T> domain_, range_;
  Reducer sum_{true};
  Array v_, ax_, ahead_, w_;  // A x, and A x' or what y is made from
};

// Fills in the steps that are not given.
template <class T>
PrimalDualOptions<T> with_steps(const AnyOperator<T>& a, PrimalDualOptions<T> options) {
  for (const std::vector<double>* steps : {&options.tau, &options.mu})
    if (!std::ranges::all_of(*steps, [](double s) { return s > 0 && std::isfinite(s); }))
      fail(ErrorCode::invalid_argument, "primal-dual: tau and mu: give numbers above 0, or none");
  if (options.linear) require_equal(options.linear->layout(), a.domain(), "primal-dual: l and A's domain");
  if (!options.tau.empty() && !options.mu.empty()) return options;
  const double square = largest_squared_singular_value(a, options.power);
  if (!std::isfinite(square))
    fail(ErrorCode::numeric, "primal-dual: A gives numbers that are not finite; no step can be found");
  const double product = square == 0 ? 1 : 0.95 * 0.95 / square;
  const auto other = [&](const std::vector<double>& given) {
    return std::vector<double>{given.empty() ? std::sqrt(product) : product / std::ranges::max(given)};
  };
  if (options.tau.empty()) options.tau = other(options.mu);
  if (options.mu.empty()) options.mu = other(options.tau);
  return options;
}

}  // namespace

template <class T>
std::unique_ptr<ProximalMethod<T>> make_primal_dual(const AnyProximal<T>& f, const AnyProximal<T>& g,
                                                    const AnyOperator<T>& a,
                                                    const PrimalDualOptions<T>& options) {
  return std::make_unique<PrimalDual<T>>(f, g, a, with_steps(a, options));
}

template <class T>
ProximalResult<T> primal_dual(const AnyProximal<T>& f, const AnyProximal<T>& g, const AnyOperator<T>& a,
                              const DistributedArray<T>& x0, const PrimalDualOptions<T>& options) {
  return run(make_primal_dual(f, g, a, options), x0);
}

template <class T>
ProximalResult<T> primal_dual(const AnyProximal<T>& f, const AnyProximal<T>& g, const AnyOperator<T>& a,
                              const DistributedArray<T>& x0, const DistributedArray<T>& y0,
                              const PrimalDualOptions<T>& options) {
  return run(make_primal_dual(f, g, a, options), x0, &y0);
}

#define SHOAL_INSTANTIATE(T)                                                                             \
  template std::unique_ptr<ProximalMethod<T>> make_primal_dual(                                          \
      const AnyProximal<T>&, const AnyProximal<T>&, const AnyOperator<T>&, const PrimalDualOptions<T>&); \
  template ProximalResult<T> primal_dual(const AnyProximal<T>&, const AnyProximal<T>&,                   \
                                         const AnyOperator<T>&, const DistributedArray<T>&,              \
                                         const PrimalDualOptions<T>&);                                   \
  template ProximalResult<T> primal_dual(const AnyProximal<T>&, const AnyProximal<T>&,                   \
                                         const AnyOperator<T>&, const DistributedArray<T>&,              \
                                         const DistributedArray<T>&, const PrimalDualOptions<T>&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
