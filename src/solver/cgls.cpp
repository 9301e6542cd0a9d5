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
      : LeastSquares<T>(a, "cgls", options),
        q_(r_),
        p_(s_),
        forward_{
            .in = [this](std::size_t i, std::size_t n) { advance(i * reals_each<T>, n * reals_each<T>); },
            .out = [this](std::size_t i, std::size_t n,
                          T* q) { add_square(i * reals_each<T>, n * reals_each<T>, reals(q)); }},
        adjoint_{.in = [this](std::size_t i,
                              std::size_t n) { update_residual(i * reals_each<T>, n * reals_each<T>); },
                 .out = [this](std::size_t i, std::size_t n,
                               T* s) { update_solution(i * reals_each<T>, n * reals_each<T>, reals(s)); }} {}

 private:
  using Base = LeastSquares<T>;
  using Base::a_, Base::result_, Base::monitor_, Base::domain_, Base::range_, Base::sum_;
  using Base::b_unit_, Base::damping2_, Base::r_, Base::s_, Base::gamma_, Base::rr_, Base::xx_;
  using R = Real<T>;

  void begin_directions() override {
    p_.fill(T(0));  // the first direction is s + 0 p
    beta_ = 0;
  }

  // p, q, r and s are in units of b_unit_; x is not.
  void iterate() override {
    qq_ = pp_ = {};
    a_.apply(p_, q_, forward_);  // p = s + beta p; q = A p; pp = p.p; qq = q.q
    const auto [qq, pp] = sum_(qq_, pp_);
    const double delta = qq + damping2_ * pp;
    if (!std::isfinite(delta)) return monitor_->stop_non_finite(result_, q_);
    if (delta == 0) return monitor_->stop(result_, Stop::breakdown);
    alpha_ = gamma_ / delta;
    local_rr_ = local_ss_ = local_xx_ = {};
    a_.apply_adjoint(r_, s_, adjoint_);  // r -= alpha q; x += alpha p; s = A^H r - damping^2 x; their squares
    const auto [gamma, rr, xx] = sum_(local_ss_, local_rr_, local_xx_);
    beta_ = gamma / gamma_;
    gamma_ = gamma;
    rr_ = rr;
    xx_ = xx;
    this->end_iteration();
  }

  // All of [i, i + n) of the reals; squares of what nobody needs are not summed.
  void advance(std::size_t i, std::size_t n) {
    if (damping2_ == 0) return kernels::axpby(R(1), reals(s_) + i, R(beta_), reals(p_) + i, n);
    pp_ += domain_.sum_over(i, i + n, [&](std::size_t k, std::size_t m) {
      return kernels::axpby_norm2(R(1), reals(s_) + k, R(beta_), reals(p_) + k, m);
    });
  }
  void add_square(std::size_t i, std::size_t n, const R* q) {
    qq_ += range_.sum_over(
        i, i + n, [&](std::size_t k, std::size_t m) { return kernels::sum_squares(q + (k - i), m); });
  }
  void update_residual(std::size_t i, std::size_t n) {
    local_rr_ += range_.sum_over(i, i + n, [&](std::size_t k, std::size_t m) {
      return kernels::axpby_norm2(R(-alpha_), reals(q_) + k, R(1), reals(r_) + k, m);
    });
  }
  void update_solution(std::size_t i, std::size_t n, R* s) {
    local_xx_ += this->update_x(alpha_ * b_unit_, p_, i, i + n);
    local_ss_ += this->damp_gradient(s, i, i + n);
  }

  DistributedArray<T> q_, p_;
  double alpha_ = 0, beta_ = 0;
  LocalSum qq_, pp_, local_rr_, local_ss_, local_xx_;
  linop::OnTheWay<T> forward_, adjoint_;
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
