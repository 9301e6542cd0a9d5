// SPDX-License-Identifier: Apache-2.0
// CGLS with one reduction, which travels while A^H is applied. With d = damping and N = A^H A + d^2:
//
//   q = A p, z = N p, u = A s, v = N s;  gamma = s.s, delta = u.u + d^2 s.s = s^H N s
//
// p^H N p = delta - beta gamma / alpha, as in Ghysels and Vanroose, 2014, since p = s + beta p_old and p is
// N-orthogonal to p_old. u = A s is computed and not carried along, so that delta is a sum of squares of what
// s is, and only s and r are recurrences.
#include <algorithm>
#include <cmath>

#include "solver/least_squares.h"
#include "solver/run.h"

namespace shoal::solver {
namespace {

template <class T>
class PipelinedCgls final : public LeastSquares<T> {
 public:
  PipelinedCgls(const AnyOperator<T>& a, const CglsOptions<T>& options)
      : LeastSquares<T>(a, "pipelined cgls", options),
        replace_every_(options.replace_every),
        b_(r_),
        u_(r_),
        q_(r_),
        v_(s_),
        p_(s_),
        z_(s_) {}

 private:
  using Base = LeastSquares<T>;
  using Base::a_, Base::result_, Base::monitor_, Base::domain_, Base::range_, Base::sum_;
  using Base::b_unit_, Base::damping2_, Base::r_, Base::s_, Base::gamma_, Base::rr_, Base::xx_;
  using R = Real<T>;

  void keep_data(const DistributedArray<T>& b) override { std::ranges::copy(b.local(), b_.local().begin()); }

  void begin_directions() override {
    for (DistributedArray<T>* array : {&q_, &p_, &z_}) array->fill(T(0));
    alpha_ = beta_ = 0;
    const double rr = rr_, xx = xx_;  // already known
    finish_sums(domain_.norm2(s_), {}, {});
    rr_ = rr;
    xx_ = xx;
    check_step();
  }

  void iterate() override {
    LocalSum rr = update_residual();
    auto [ss, xx] = update_gradient();
    if (replace_every_ > 0 && (result_.iterations + 1) % replace_every_ == 0) {
      replace();
      rr = range_.norm2(r_);
      ss = domain_.norm2(s_);
    }
    finish_sums(ss, rr, xx);
    this->end_iteration();
    if (result_.stop == Stop::none) check_step();
  }

  // q = u + beta q; r -= alpha q
  LocalSum update_residual() {
    return range_.sum([&](std::size_t i, std::size_t n) {
      return kernels::pipelined_residual_update(R(beta_), R(alpha_), reals(u_) + i, reals(q_) + i,
                                                reals(r_) + i, n);
    });
  }

  // p = s + beta p; z = v + beta z; x += alpha p; s -= alpha z
  LocalSums update_gradient() {
    return domain_.two_sums([&](std::size_t i, std::size_t n) {
      return kernels::pipelined_gradient_update(R(beta_), R(alpha_), R(alpha_ * b_unit_), reals(v_) + i,
                                                reals(z_) + i, reals(s_) + i, reals(p_) + i,
                                                reals(result_.x) + i, 1 / b_unit_, n);
    });
  }

  // What the recurrences stand for.
  void replace() {
    a_.apply(result_.x, r_);
    range_.axpby(1 / b_unit_, b_, -1 / b_unit_, r_);
    this->compute_gradient();
    a_.apply(p_, q_);
    a_.apply_adjoint(q_, z_);
    if (damping2_ != 0) domain_.axpby(damping2_, p_, 1, z_);
  }

  // The sums travel while v = N s is computed; then the next alpha and beta.
  void finish_sums(const LocalSum& ss, const LocalSum& local_rr, const LocalSum& local_xx) {
    a_.apply(s_, u_);
    sum_.start(ss, range_.norm2(u_), local_rr, local_xx);
    a_.apply_adjoint(u_, v_);
    if (damping2_ != 0) domain_.axpby(damping2_, s_, 1, v_);
    const auto [gamma, uu, rr, xx] = sum_.template wait<4>();
    const double delta = uu + damping2_ * gamma;
    beta_ = alpha_ == 0 ? 0 : gamma / gamma_;
    alpha_ = gamma / (alpha_ == 0 ? delta : delta - beta_ * gamma / alpha_);
    gamma_ = gamma;
    rr_ = rr;
    xx_ = xx;
  }

  // Whether the next step can be done: p^H N p is positive.
  void check_step() {
    if (std::isnan(alpha_))
      monitor_->stop_non_finite(result_, u_);
    else if (!std::isfinite(alpha_) || alpha_ <= 0)
      monitor_->stop(result_, Stop::breakdown);
  }

  int replace_every_;
  DistributedArray<T> b_, u_, q_, v_, p_, z_;  // b in its own units, the others in b_unit_
  double alpha_ = 0, beta_ = 0;
};

}  // namespace

template <class T>
std::unique_ptr<Solver<T>> make_pipelined_cgls(const AnyOperator<T>& a, const CglsOptions<T>& options) {
  return std::make_unique<PipelinedCgls<T>>(a, options);
}

#define SHOAL_INSTANTIATE(T) \
  template std::unique_ptr<Solver<T>> make_pipelined_cgls(const AnyOperator<T>&, const CglsOptions<T>&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
