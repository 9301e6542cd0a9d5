// SPDX-License-Identifier: Apache-2.0
#include "solver/least_squares.h"

#include <cmath>

#include "solver/run.h"

namespace shoal::solver {

template <class T>
LeastSquares<T>::LeastSquares(const AnyOperator<T>& a, const char* name, const CglsOptions<T>& options)
    : Solver<T>(a, std::make_unique<Monitor<T>>(a.communicator(), name, options.max_iterations,
                                                options.callback, options.show_every)),
      tolerance_(options.tolerance),
      damping2_(options.damping * options.damping),
      domain_(a.domain(), a.communicator().rank()),
      range_(a.range(), a.communicator().rank()),
      sum_(domain_.any_split() || range_.any_split()),
      r_(a.communicator(), a.range()),
      s_(a.communicator(), a.domain()) {}

template <class T>
void LeastSquares<T>::start(const DistributedArray<T>& b, const DistributedArray<T>* x0) {
  sum_.use(b.reduction_communicator());
  start_ = begin_residual(a_, b, x0, range_, r_);
  b_unit_ = start_.scale;
  rr_ = start_.residual_norm * start_.residual_norm;
  // With a start, |A^H b| is not the norm of the first gradient; it is asked for by the tolerance alone.
  if (x0 != nullptr && tolerance_ > 0) {
    s_.share_mask(b);
    a_.apply_adjoint(b, s_);
    gradient_at_zero_ = norm(s_) / b_unit_;
  }
  const LocalSum ss = compute_gradient();
  gamma_ = sum_(ss)[0];
  const double x_norm = x0 == nullptr || damping2_ == 0 ? 0 : static_cast<double>(norm(result_.x)) / b_unit_;
  xx_ = x_norm * x_norm;
  if (x0 == nullptr) gradient_at_zero_ = std::sqrt(gamma_);
  Monitor<T>& monitor = *monitor_;
  typename Monitor<T>::Norms known = norms();
  known.suspect = std::isfinite(rr_) ? &s_ : &suspect(start_, b, r_);
  monitor.begin(result_, known);
  if (result_.stop != Stop::none) return;
  keep_data(b);
  begin_directions();
}

template <class T>
LocalSum LeastSquares<T>::update_x(double step, const DistributedArray<T>& p, std::size_t begin,
                                   std::size_t end) {
  using R = Real<T>;
  if (damping2_ == 0) {
    kernels::axpby(R(step), reals(p) + begin, R(1), reals(result_.x) + begin, end - begin);
    return {};
  }
  return domain_.sum_over(begin, end, [&](std::size_t i, std::size_t n) {
    return kernels::axpy_scaled_norm2(R(step), reals(p) + i, reals(result_.x) + i, 1 / b_unit_, n);
  });
}

template <class T>
LocalSum LeastSquares<T>::damp_gradient(Real<T>* s, std::size_t begin, std::size_t end) {
  using R = Real<T>;
  return domain_.sum_over(begin, end, [&](std::size_t i, std::size_t n) {
    R* part = s + (i - begin);
    if (damping2_ == 0) return kernels::sum_squares(part, n);
    return kernels::axpby_norm2(R(-damping2_ / b_unit_), reals(result_.x) + i, R(1), part, n);
  });
}

template <class T>
LocalSum LeastSquares<T>::compute_gradient() {
  a_.apply_adjoint(r_, s_);
  return damp_gradient(reals(s_), 0, domain_.count());
}

template <class T>
typename Monitor<T>::Norms LeastSquares<T>::norms() {
  const double residual = std::sqrt(rr_), gradient = std::sqrt(gamma_);
  result_.gradient_norm = gradient * b_unit_;
  return {
      .residual = residual * b_unit_,
      .cost = std::hypot(residual, std::sqrt(damping2_ * xx_)) * b_unit_,
      .converged = residual <= tolerance_ * start_.data_norm || gradient <= tolerance_ * gradient_at_zero_,
      .suspect = &r_};
}

template <class T>
void LeastSquares<T>::end_iteration() {
  monitor_->end(result_, norms());
}

template class LeastSquares<float>;
template class LeastSquares<double>;
template class LeastSquares<std::complex<float>>;
template class LeastSquares<std::complex<double>>;

}  // namespace shoal::solver
