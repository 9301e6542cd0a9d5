// SPDX-License-Identifier: Apache-2.0
#include "shoal/solver/proximal/admm.h"

#include <cmath>

#include <fmt/format.h>

#include "shoal/base/error.h"
#include "shoal/solver/cgls.h"
#include "solver/monitor.h"
#include "solver/proximal/scaled_system.h"
#include "solver/proximal/support.h"
#include "solver/run.h"

namespace shoal::solver {
namespace {

template <class T>
class AdmmL2 final : public ProximalMethod<T> {
 public:
  using Array = DistributedArray<T>;

  AdmmL2(const AnyProximal<T>& g, const AnyOperator<T>& op, const Array& b, const AnyOperator<T>& a,
         const AdmmL2Options<T>& options)
      : ProximalMethod<T>({{Array(op.communicator(), op.domain())}, Array(op.communicator(), a.range())},
                          std::make_unique<Monitor<T>>(op.communicator(), "admm", options.max_iterations,
                                                       options.callback, options.show_every)),
        g_(g),
        op_(op),
        a_(a),
        options_(options),
        root_tau_(std::make_shared<const double>(std::sqrt(options.tau))),
        data_(op.range(), op.communicator().rank()),
        split_(a.range(), op.communicator().rank()),
        b_(b),
        r_(op.communicator(), op.range()),
        ax_(op.communicator(), a.range()),
        u_(ax_),
        w_(ax_) {
    const AnyOperator<T> system = scaled_system<T>(op, a, root_tau_);
    right_.emplace(op.communicator(), system.range());
    least_squares_ = make_cgls<T>(
        system, {.max_iterations = options.inner_iterations, .tolerance = options.inner_tolerance});
  }

 private:
  using ProximalMethod<T>::result_;
  using ProximalMethod<T>::monitor_;

  Array& z() { return *result_.auxiliary; }

  void start(bool z_given) override {
    sum_.use(result_.x.reduction_communicator());
    right_->share_mask(result_.x);
    data_.axpby(*root_tau_, b_, 0, right_->member(0));
    u_.fill(T(0));
    a_.apply(result_.x, ax_);
    if (!z_given) z() = ax_;
    const auto [cost, gap] = sum_(this->cost(), split_.axpby_norm2(1, z(), -1, ax_));
    if (options_.g_first) a_.apply(result_.x, ax_);
    monitor_->begin(result_,
                    {.residual = std::sqrt(gap), .cost = cost, .suspect = suspect(gap), .constrained = true});
  }

  void iterate() override {
    LocalSums z_step;
    if (options_.g_first) z_step = update_z();
    if (!update_x()) return monitor_->stop_non_finite(result_, *right_);
    a_.apply(result_.x, ax_);
    if (!options_.g_first) z_step = update_z();
    const LocalSum gap = update_u();
    const auto [cost, gap2, step2, zz] = sum_(this->cost(), gap, z_step.first, z_step.second);
    if (options_.g_first) a_.apply(result_.x, ax_);
    const double limit = options_.tolerance * options_.tolerance * zz;
    monitor_->end(result_, {.residual = std::sqrt(gap2),
                            .cost = cost,
                            .converged = gap2 <= limit && step2 <= limit,
                            .suspect = suspect(gap2),
                            .constrained = true});
  }

  // argmin over x of |b - Op x|^2 / 2 + |A x - (z - u)|^2 / (2 tau); false where a number is not finite.
  bool update_x() {
    right_->member(1) = z() - u_;
    least_squares_->setup(*right_, result_.x);
    while (least_squares_->step()) {
    }
    const Result<T>& inner = least_squares_->result();
    if (inner.stop == Stop::non_finite) return false;
    std::ranges::copy(inner.x.local(), result_.x.local().begin());
    return true;
  }

  // z = prox of tau g at A x + u; the sums of squares of its step and of itself.
  LocalSums update_z() {
    w_ = ax_ + u_;
    g_.prox(w_, options_.tau, w_);
    return move_to(split_, w_, z());
  }

  // u += A x - z; the sum of squares of A x - z, which stays in ax_.
  LocalSum update_u() {
    const LocalSum gap = split_.axpby_norm2(-1, z(), 1, ax_);
    split_.axpby(1, ax_, 1, u_);
    return gap;
  }

  // |b - Op x|^2 / 2 + g(z)
  LocalSum cost() {
    op_.apply(result_.x, r_);
    return 0.5 * data_.axpby_norm2(1, b_, -1, r_) + g_.local_value(z());
  }

  const Array* suspect(double gap) const { return std::isfinite(gap) ? &r_ : &ax_; }

  AnyProximal<T> g_;
  AnyOperator<T> op_, a_;
  AdmmL2Options<T> options_;
  std::shared_ptr<const double> root_tau_;
  Space<T> data_, split_;
  Reducer sum_{true};
  Array b_, r_, ax_, u_, w_;
  std::optional<Array> right_;  // [sqrt(tau) b; z - u]
  std::unique_ptr<Solver<T>> least_squares_;
};

template <class T>
void check(const AnyOperator<T>& op, const DistributedArray<T>& b, const AnyOperator<T>& a,
           const AdmmL2Options<T>& options) {
  if (!(options.tau > 0) || !std::isfinite(options.tau))
    fail(ErrorCode::invalid_argument, fmt::format("admm: tau is {}; give more than 0", options.tau));
  require_equal(op.range(), b.layout(), "admm: the operator's range and b");
  require_equal(op.domain(), a.domain(), "admm: the domains of both operators");
}

}  // namespace

template <class T>
std::unique_ptr<ProximalMethod<T>> make_admm_l2(const AnyProximal<T>& g, const AnyOperator<T>& op,
                                                const DistributedArray<T>& b, const AnyOperator<T>& a,
                                                const AdmmL2Options<T>& options) {
  check(op, b, a, options);
  return std::make_unique<AdmmL2<T>>(g, op, b, a, options);
}

template <class T>
ProximalResult<T> admm_l2(const AnyProximal<T>& g, const AnyOperator<T>& op, const DistributedArray<T>& b,
                          const AnyOperator<T>& a, const DistributedArray<T>& x0,
                          const AdmmL2Options<T>& options) {
  return run(make_admm_l2(g, op, b, a, options), x0);
}

template <class T>
ProximalResult<T> admm_l2(const AnyProximal<T>& g, const AnyOperator<T>& op, const DistributedArray<T>& b,
                          const AnyOperator<T>& a, const DistributedArray<T>& x0,
                          const DistributedArray<T>& z0, const AdmmL2Options<T>& options) {
  return run(make_admm_l2(g, op, b, a, options), x0, &z0);
}

#define SHOAL_INSTANTIATE(T)                                                                                \
  template std::unique_ptr<ProximalMethod<T>> make_admm_l2(const AnyProximal<T>&, const AnyOperator<T>&,    \
                                                           const DistributedArray<T>&,                      \
                                                           const AnyOperator<T>&, const AdmmL2Options<T>&); \
  template ProximalResult<T> admm_l2(const AnyProximal<T>&, const AnyOperator<T>&,                          \
                                     const DistributedArray<T>&, const AnyOperator<T>&,                     \
                                     const DistributedArray<T>&, const AdmmL2Options<T>&);                  \
  template ProximalResult<T> admm_l2(                                                                       \
      const AnyProximal<T>&, const AnyOperator<T>&, const DistributedArray<T>&, const AnyOperator<T>&,      \
      const DistributedArray<T>&, const DistributedArray<T>&, const AdmmL2Options<T>&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
