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
        q_(r_),
        way_{.in = [this](std::size_t i, std::size_t n) { advance(i * reals_each<T>, n * reals_each<T>); },
             .out = [this](std::size_t i, std::size_t n,
                           T* q) { add_product(i * reals_each<T>, n * reals_each<T>, reals(q)); }} {}

 private:
  using Solver<T>::a_;
  using Solver<T>::result_;
  using Solver<T>::monitor_;
  using R = Real<T>;

  void start(const DistributedArray<T>& b, const DistributedArray<T>* x0) override {
    sum_.use(b.reduction_communicator());
    start_ = begin_residual(a_, b, x0, space_, r_);
    rr_ = start_.residual_norm * start_.residual_norm;
    p_.fill(T(0));  // the first direction is r + 0 p
    beta_ = step_ = 0;
    monitor_->begin(result_, norms(suspect(start_, b, r_)));
  }

  // p, q and r are in units of start_.scale; x is not.
  void iterate() override {
    pq_ = {};
    a_.apply(p_, q_, way_);  // x += step p (the last one); p = r + beta p; q = A p; pq = p.q
    step_ = 0;
    const auto [pq] = sum_(pq_);
    if (!std::isfinite(pq)) return monitor_->stop_non_finite(result_, q_);
    if (result_.iterations == 0) definite_ = pq < 0 ? -1 : 1;
    if (pq * definite_ <= 0) return monitor_->stop(result_, Stop::breakdown);
    const double alpha = rr_ / pq;
    const auto [rr] = sum_(space_.axpby_norm2(-alpha, q_, 1, r_));  // r -= alpha q; rr = r.r
    step_ = alpha * start_.scale;
    beta_ = rr / rr_;
    rr_ = rr;
    if (monitor_->watched()) settle();
    monitor_->end(result_, norms(r_));
  }

  // x's step is put off to when p is read next.
  void settle() override {
    if (step_ != 0) space_.axpby(step_, p_, 1, result_.x);
    step_ = 0;
  }

  void advance(std::size_t i, std::size_t n) {
    if (step_ == 0)
      kernels::axpby(R(1), reals(r_) + i, R(beta_), reals(p_) + i, n);
    else
      kernels::cg_update(R(step_), reals(result_.x) + i, reals(r_) + i, R(beta_), reals(p_) + i, n);
  }

  void add_product(std::size_t i, std::size_t n, const R* q) {
    pq_ += space_.sum_over(
        i, i + n, [&](std::size_t k, std::size_t m) { return kernels::dot(reals(p_) + k, q + (k - i), m); });
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
  double beta_ = 0, step_ = 0;  // of the next direction, and of x along the last
  LocalSum pq_;
  double definite_ = 1;  // the sign of p^H A p
  linop::OnTheWay<T> way_;
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
