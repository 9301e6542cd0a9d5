// SPDX-License-Identifier: Apache-2.0
#include "shoal/solver/proximal/proximal_gradient.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "shoal/base/error.h"
#include "solver/monitor.h"
#include "solver/proximal/support.h"
#include "solver/run.h"

namespace shoal::solver {
namespace {

// x -> grad f(x) - grad f(0): of a quadratic f its matrix, which is Hermitian.
template <class T>
class GradientDifference {
 public:
  using domain_type = T;
  using range_type = T;
  using Array = DistributedArray<T>;

  GradientDifference(const comm::Communicator& communicator, const Layout& layout, const AnyProximal<T>& f)
      : f_(f), at_zero_(communicator, layout) {
    f_.gradient(Array(communicator, layout), at_zero_);
  }
  const comm::Communicator& communicator() const { return at_zero_.communicator(); }
  const Layout& domain() const { return at_zero_.layout(); }
  const Layout& range() const { return at_zero_.layout(); }
  void apply(const Array& x, Array& y) const {
    f_.gradient(x, y);
    y -= at_zero_;
  }
  void apply_adjoint(const Array& y, Array& x) const { apply(y, x); }

 private:
  AnyProximal<T> f_;
  Array at_zero_;
};

template <class T>
double tau_for(const comm::Communicator& communicator, const Layout& layout, const AnyProximal<T>& f,
               const ProximalGradientOptions<T>& options) {
  if (options.tau > 0) return options.tau;
  if (options.backtracking) return 1;
  const AnyOperator<T> curvature = GradientDifference<T>(communicator, layout, f);
  const double largest = static_cast<double>(std::abs(power_iteration(curvature, options.power).value));
  if (!std::isfinite(largest))
    fail(ErrorCode::numeric,
         "proximal gradient: the gradient gives numbers that are not finite; no step can be found");
  return largest == 0 ? 1 : 0.95 / largest;
}

// Without acceleration y is x itself.
template <class T>
class ProximalGradient final : public ProximalMethod<T> {
 public:
  using Array = DistributedArray<T>;

  ProximalGradient(const comm::Communicator& communicator, const Layout& layout, const AnyProximal<T>& f,
                   const AnyProximal<T>& g, const ProximalGradientOptions<T>& options)
      : ProximalMethod<T>(
            {{Array(communicator, layout)}},
            std::make_unique<Monitor<T>>(communicator, "proximal gradient", options.max_iterations,
                                         options.callback, options.show_every)),
        f_(f),
        g_(g),
        options_(options),
        first_tau_(tau_for(communicator, layout, f, options)),
        space_(layout, communicator.rank()),
        gradient_(communicator, layout),
        v_(gradient_) {
    if (options.acceleration != Acceleration::none) y_.emplace(gradient_);
    if (options.backtracking) w_.emplace(gradient_);
  }

 private:
  using ProximalMethod<T>::result_;
  using ProximalMethod<T>::monitor_;

  Array& y() { return y_ ? *y_ : result_.x; }

  void start(bool) override {
    sum_.use(result_.x.reduction_communicator());
    tau_ = first_tau_;
    t_ = 1;
    if (y_) *y_ = result_.x;
    f_at_y_ = f_.gradient(y(), gradient_);
    const auto [cost] = sum_(f_at_y_ + epsilon() * g_.local_value(result_.x));
    cost_ = cost;
    monitor_->begin(result_, {.cost = cost, .suspect = &gradient_, .constrained = true});
  }

  void iterate() override {
    if (!find_v()) return monitor_->stop(result_, Stop::breakdown);
    if (options_.relaxation != 1) space_.axpby(1 - options_.relaxation, result_.x, options_.relaxation, v_);
    const LocalSums squares = extrapolate(space_, momentum(), v_, result_.x, y());
    LocalSum cost = epsilon() * g_.local_value(result_.x);
    if (y_) cost += f_.local_value(result_.x);
    f_at_y_ = f_.gradient(y(), gradient_);
    if (!y_) cost += f_at_y_;
    const auto [change, xx, total] = sum_(squares.first, squares.second, cost);
    const bool still = change <= options_.tolerance * options_.tolerance * xx;
    const bool level = std::abs(total - cost_) <= options_.cost_tolerance * std::abs(cost_);
    cost_ = total;
    monitor_->end(result_, {.residual = std::sqrt(change),
                            .cost = total,
                            .converged = still || level,
                            .suspect = std::isfinite(change) ? &gradient_ : &result_.x,
                            .constrained = true});
  }

  // v = prox of tau epsilon g at y - tau grad f(y); false where backtracking ends without.
  bool find_v() {
    for (int tries = 0;; ++tries) {
      step_from_y();
      if (!options_.backtracking || is_below_bound()) return true;
      if (tries == options_.max_backtracks) return false;
      tau_ *= options_.shrink;
    }
  }

  void step_from_y() {
    axpby(T(1), y(), T(0), v_);
    space_.axpby(-tau_, gradient_, 1, v_);
    const double t = tau_ * epsilon();
    if (t > 0) g_.prox(v_, t, v_);
  }

  // f(v) <= f(y) + <grad f(y), v - y> + |v - y|^2 / (2 tau), but for rounding. NaN is let through, to be seen
  // in the norms.
  bool is_below_bound() {
    axpby(T(1), v_, T(0), *w_);
    space_.axpby(-1, y(), 1, *w_);
    const LocalSum bound = f_at_y_ + space_.dot(gradient_, *w_) + 1 / (2 * tau_) * space_.norm2(*w_);
    const auto [at_v, limit, at_y] = sum_(f_.local_value(v_), bound, f_at_y_);
    constexpr auto rounding = 10 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
    return !(at_v > limit + rounding * (std::abs(at_y) + std::abs(at_v)));
  }

  double momentum() {
    if (options_.acceleration == Acceleration::none) return 0;
    if (options_.acceleration == Acceleration::vandenberghe)
      return static_cast<double>(result_.iterations) / (result_.iterations + 3);
    const double before = t_;
    t_ = (1 + std::sqrt(1 + 4 * t_ * t_)) / 2;
    return (before - 1) / t_;
  }

  double epsilon() const { return of_iteration(options_.epsilon, result_.iterations); }

  AnyProximal<T> f_, g_;
  ProximalGradientOptions<T> options_;
  double first_tau_, tau_ = 1, t_ = 1, cost_ = 0;
  Space<T> space_;
  Reducer sum_{true};
  LocalSum f_at_y_;
  Array gradient_, v_;          // the gradient is that at y
  std::optional<Array> y_, w_;  // w = v - y, for backtracking
};

template <class T>
void check(const AnyProximal<T>& f, const ProximalGradientOptions<T>& options) {
  const auto refuse = [](const std::string& what) {
    fail(ErrorCode::invalid_argument, "proximal gradient: " + what);
  };
  if (!f.has_gradient())
    fail(ErrorCode::unsupported, "proximal gradient: f has no gradient; give the smooth function first");
  if (!(options.tau >= 0)) refuse(fmt::format("tau is {}; give 0 or more", options.tau));
  if (options.epsilon.empty() || !std::ranges::all_of(options.epsilon, [](double e) { return e >= 0; }))
    refuse("epsilon: give at least one number, all 0 or more");
  if (!(options.shrink > 0) || !(options.shrink < 1))
    refuse(fmt::format("shrink is {}; give a number between 0 and 1", options.shrink));
  if (options.relaxation != 1 && options.acceleration != Acceleration::none)
    refuse("relaxation and acceleration do not go together");
}

}  // namespace

template <class T>
std::unique_ptr<ProximalMethod<T>> make_proximal_gradient(const comm::Communicator& communicator,
                                                          const Layout& layout, const AnyProximal<T>& f,
                                                          const AnyProximal<T>& g,
                                                          const ProximalGradientOptions<T>& options) {
  check(f, options);
  return std::make_unique<ProximalGradient<T>>(communicator, layout, f, g, options);
}

template <class T>
ProximalResult<T> proximal_gradient(const AnyProximal<T>& f, const AnyProximal<T>& g,
                                    const DistributedArray<T>& x0,
                                    const ProximalGradientOptions<T>& options) {
  return run(make_proximal_gradient(x0.communicator(), x0.layout(), f, g, options), x0);
}

#define SHOAL_INSTANTIATE(T)                                                                  \
  template std::unique_ptr<ProximalMethod<T>> make_proximal_gradient(                         \
      const comm::Communicator&, const Layout&, const AnyProximal<T>&, const AnyProximal<T>&, \
      const ProximalGradientOptions<T>&);                                                     \
  template ProximalResult<T> proximal_gradient(const AnyProximal<T>&, const AnyProximal<T>&,  \
                                               const DistributedArray<T>&,                    \
                                               const ProximalGradientOptions<T>&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
