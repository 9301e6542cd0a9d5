// SPDX-License-Identifier: Apache-2.0
// Ghysels and Vanroose, 2014, algorithm 3 without preconditioner, turned so that an iteration ends with its
// reduction: the norm of its residual is then known.
//
//   w = A r, s = A p, z = A s, q = A w;  gamma = r.r, delta = w.r
#include "solver/pipelined_cg.h"

#include <algorithm>
#include <cmath>

#include "solver/monitor.h"
#include "solver/run.h"
#include "solver/start.h"

namespace shoal::solver {
namespace {

template <class T>
class PipelinedCg final : public Solver<T> {
 public:
  PipelinedCg(const AnyOperator<T>& a, const CgOptions<T>& options)
      : Solver<T>(a, std::make_unique<Monitor<T>>(a.communicator(), "pipelined cg", options.max_iterations,
                                                  options.callback, options.show_every)),
        tolerance_(options.tolerance),
        replace_every_(options.replace_every),
        space_(a.domain(), a.communicator().rank()),
        sum_(space_.any_split()),
        b_(a.communicator(), a.domain()),
        r_(b_),
        w_(b_),
        q_(b_),
        p_(b_),
        s_(b_),
        z_(b_) {}

 private:
  using Solver<T>::a_;
  using Solver<T>::result_;
  using Solver<T>::monitor_;
  using R = Real<T>;

  void start(const DistributedArray<T>& b, const DistributedArray<T>* x0) override {
    sum_.use(b.reduction_communicator());
    start_ = begin_residual(a_, b, x0, space_, r_);
    gamma_ = start_.residual_norm * start_.residual_norm;
    monitor_->begin(result_, norms(suspect(start_, b, r_)));
    if (result_.stop != Stop::none) return;
    std::ranges::copy(b.local(), b_.local().begin());
    for (DistributedArray<T>* array : {&p_, &s_, &z_}) array->fill(T(0));
    a_.apply(r_, w_);
    alpha_ = beta_ = 0;
    finish_sums({space_.norm2(r_), space_.dot(w_, r_)});
    definite_ = alpha_ < 0 ? -1 : 1;
    check_step();
  }

  void iterate() override {
    LocalSums sums = update();
    if (replace_every_ > 0 && (result_.iterations + 1) % replace_every_ == 0) {
      replace();
      sums = {space_.norm2(r_), space_.dot(w_, r_)};
    }
    finish_sums(sums);
    monitor_->end(result_, norms(r_));
    if (result_.stop == Stop::none) check_step();
  }

  // z = q + beta z; s = w + beta s; p = r + beta p; x += alpha p; r -= alpha s; w -= alpha z
  LocalSums update() {
    return space_.two_sums([&](std::size_t i, std::size_t n) {
      return kernels::pipelined_cg_update(R(beta_), R(alpha_), R(alpha_ * start_.scale), reals(q_) + i,
                                          reals(z_) + i, reals(s_) + i, reals(p_) + i, reals(result_.x) + i,
                                          reals(r_) + i, reals(w_) + i, n);
    });
  }

  // What the recurrences stand for.
  void replace() {
    a_.apply(result_.x, r_);
    space_.axpby(1 / start_.scale, b_, -1 / start_.scale, r_);
    a_.apply(r_, w_);
    a_.apply(p_, s_);
    a_.apply(s_, z_);
  }

  // The sums travel while q = A w is computed; then the next alpha and beta.
  void finish_sums(const LocalSums& sums) {
    sum_.start(sums.first, sums.second);
    a_.apply(w_, q_);
    const auto [gamma, delta] = sum_.template wait<2>();
    beta_ = alpha_ == 0 ? 0 : gamma / gamma_;
    const double pap = alpha_ == 0 ? delta : delta - beta_ * gamma / alpha_;  // p^H A p of the next p
    alpha_ = gamma / pap;
    gamma_ = gamma;
  }

  // Whether the next step can be done: p^H A p keeps its sign and is not zero.
  void check_step() {
    if (std::isnan(alpha_))
      monitor_->stop_non_finite(result_, w_);
    else if (!std::isfinite(alpha_) || alpha_ * definite_ <= 0)
      monitor_->stop(result_, Stop::breakdown);
  }

  typename Monitor<T>::Norms norms(const DistributedArray<T>& suspect) const {
    const double residual = std::sqrt(gamma_);
    return {.residual = residual * start_.scale,
            .cost = residual * start_.scale,
            .converged = residual <= tolerance_ * start_.data_norm,
            .suspect = &suspect};
  }

  double tolerance_;
  int replace_every_;
  Space<T> space_;
  Reducer sum_;
  DistributedArray<T> b_, r_, w_, q_, p_, s_, z_;  // b in its own units, the others in start_.scale
  Start start_;
  double gamma_ = 0, alpha_ = 0, beta_ = 0;
  double definite_ = 1;  // the sign of p^H A p
};

}  // namespace

template <class T>
std::unique_ptr<Solver<T>> make_pipelined_cg(const AnyOperator<T>& a, const CgOptions<T>& options) {
  return std::make_unique<PipelinedCg<T>>(a, options);
}

#define SHOAL_INSTANTIATE(T) \
  template std::unique_ptr<Solver<T>> make_pipelined_cg(const AnyOperator<T>&, const CgOptions<T>&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
