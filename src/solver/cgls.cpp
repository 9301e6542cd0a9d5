// SPDX-License-Identifier: Apache-2.0
#include "shoal/solver/cgls.h"

#include <cmath>

#include "solver/least_squares.h"
#include "solver/run.h"

namespace shoal::solver {
namespace {

template <class T>
class Cgls final : public LeastSquares<T> {
 public:
  Cgls(const AnyOperator<T>& a, const CglsOptions<T>& options)
      : LeastSquares<T>(a, "cgls", options), q_(r_), p_(s_) {}

 private:
  using Base = LeastSquares<T>;
  using Base::a_, Base::result_, Base::monitor_, Base::domain_, Base::range_, Base::sum_;
  using Base::b_unit_, Base::damping2_, Base::r_, Base::s_, Base::gamma_, Base::rr_, Base::xx_;

  void begin_directions() override {
    std::ranges::copy(s_.local(), p_.local().begin());
    pp_ = damping2_ == 0 ? LocalSum() : domain_.norm2(p_);
  }

  // p, q, r and s are in units of b_unit_; x is not.
  void iterate() override {
    a_.apply(p_, q_);
    const auto [qq, pp] = sum_(range_.norm2(q_), pp_);
    const double delta = qq + damping2_ * pp;
    if (!std::isfinite(delta)) return monitor_->stop_non_finite(result_, q_);
    if (delta == 0) return monitor_->stop(result_, Stop::breakdown);
    const double alpha = gamma_ / delta;
    const LocalSum xx = this->update_x(alpha * b_unit_, p_);          // x += alpha p
    const LocalSum local_rr = range_.axpby_norm2(-alpha, q_, 1, r_);  // r -= alpha q
    const LocalSum ss = this->compute_gradient();                     // s = A^H r - damping^2 x
    const auto [gamma, rr, sum_xx] = sum_(ss, local_rr, xx);
    const double beta = gamma / gamma_;
    gamma_ = gamma;
    rr_ = rr;
    xx_ = sum_xx;
    if (damping2_ == 0)
      domain_.axpby(1, s_, beta, p_);  // p = s + beta p
    else
      pp_ = domain_.axpby_norm2(1, s_, beta, p_);
    this->end_iteration();
  }

  DistributedArray<T> q_, p_;
  LocalSum pp_;
};

}  // namespace

template <class T>
std::unique_ptr<Solver<T>> make_cgls(const AnyOperator<T>& a, const CglsOptions<T>& options) {
  if (options.variant == Variant::pipelined) return make_pipelined_cgls(a, options);
  return std::make_unique<Cgls<T>>(a, options);
}

template <class T>
Result<T> cgls(const AnyOperator<T>& a, const DistributedArray<T>& b, const CglsOptions<T>& options) {
  return run<T>(make_cgls(a, options), b, nullptr);
}

template <class T>
Result<T> cgls(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>& x0,
               const CglsOptions<T>& options) {
  return run(make_cgls(a, options), b, &x0);
}

#define SHOAL_INSTANTIATE(T)                                                                             \
  template std::unique_ptr<Solver<T>> make_cgls(const AnyOperator<T>&, const CglsOptions<T>&);           \
  template Result<T> cgls(const AnyOperator<T>&, const DistributedArray<T>&, const CglsOptions<T>&);     \
  template Result<T> cgls(const AnyOperator<T>&, const DistributedArray<T>&, const DistributedArray<T>&, \
                          const CglsOptions<T>&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
