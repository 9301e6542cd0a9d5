// SPDX-License-Identifier: Apache-2.0
#include "shoal/solver/cg.h"

#include <cmath>

#include "solver/monitor.h"
#include "solver/pipelined_cg.h"
#include "solver/run.h"
#include "solver/start.h"

namespace shoal::solver {
namespace {

template <class T>
class Cg final : public Solver<T> {
 public:
  Cg(const AnyOperator<T>& a, const CgOptions<T>& options)
      : Solver<T>(a, std::make_unique<Monitor<T>>(a.communicator(), "cg", options.max_iterations,
                                                  options.callback, options.show_every)),
        tolerance_(options.tolerance),
        space_(a.domain(), a.communicator().rank()),
        sum_(space_.any_split()),
        r_(a.communicator(), a.domain()),
        p_(r_),
        q_(r_) {}

 private:
  using Solver<T>::a_;
  using Solver<T>::result_;
  using Solver<T>::monitor_;
  using R = Real<T>;

  void start(const DistributedArray<T>& b, const DistributedArray<T>* x0) override {
    sum_.use(b.reduction_communicator());
    start_ = begin_residual(a_, b, x0, space_, r_);
    rr_ = start_.residual_norm * start_.residual_norm;
    std::ranges::copy(r_.local(), p_.local().begin());
    monitor_->begin(result_, norms(suspect(start_, b, r_)));
  }

  // p, q and r are in units of start_.scale; x is not.
  void iterate() override {
    a_.apply(p_, q_);
    const auto [pq] = sum_(space_.dot(p_, q_));
    if (!std::isfinite(pq)) return monitor_->stop_non_finite(result_, q_);
    if (result_.iterations == 0) definite_ = pq < 0 ? -1 : 1;
    if (pq * definite_ <= 0) return monitor_->stop(result_, Stop::breakdown);
    const double alpha = rr_ / pq;
    const auto [rr] = sum_(update(alpha));  // x += alpha p; r -= alpha q; rr = r.r
    const double beta = rr / rr_;
    rr_ = rr;
    space_.axpby(1, r_, beta, p_);  // p = r + beta p
    monitor_->end(result_, norms(r_));
  }

  LocalSum update(double alpha) {
    return space_.sum([&](std::size_t i, std::size_t n) {
      return kernels::cg_update(R(alpha * start_.scale), reals(p_) + i, reals(result_.x) + i, R(alpha),
                                reals(q_) + i, reals(r_) + i, n);
    });
  }

  typename Monitor<T>::Norms norms(const DistributedArray<T>& suspect) const {
    const double residual = std::sqrt(rr_);
    return {.residual = residual * start_.scale,
            .cost = residual * start_.scale,
            .converged = residual <= tolerance_ * start_.data_norm,
            .suspect = &suspect};
  }

  double tolerance_;
  Space<T> space_;
  Reducer sum_;
  DistributedArray<T> r_, p_, q_;
  Start start_;
  double rr_ = 0;
  double definite_ = 1;  // the sign of p^H A p
};

}  // namespace

template <class T>
std::unique_ptr<Solver<T>> make_cg(const AnyOperator<T>& a, const CgOptions<T>& options) {
  require_equal(a.domain(), a.range(), "the domain and the range of the operator of cg");
  if (options.variant == Variant::pipelined) return make_pipelined_cg(a, options);
  return std::make_unique<Cg<T>>(a, options);
}

template <class T>
Result<T> cg(const AnyOperator<T>& a, const DistributedArray<T>& b, const CgOptions<T>& options) {
  return run<T>(make_cg(a, options), b, nullptr);
}

template <class T>
Result<T> cg(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>& x0,
             const CgOptions<T>& options) {
  return run(make_cg(a, options), b, &x0);
}

#define SHOAL_INSTANTIATE(T)                                                                           \
  template std::unique_ptr<Solver<T>> make_cg(const AnyOperator<T>&, const CgOptions<T>&);             \
  template Result<T> cg(const AnyOperator<T>&, const DistributedArray<T>&, const CgOptions<T>&);       \
  template Result<T> cg(const AnyOperator<T>&, const DistributedArray<T>&, const DistributedArray<T>&, \
                        const CgOptions<T>&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
