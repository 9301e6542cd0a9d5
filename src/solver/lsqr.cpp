// SPDX-License-Identifier: Apache-2.0
#include "shoal/solver/lsqr.h"

#include <cmath>

#include "solver/monitor.h"
#include "solver/run.h"
#include "solver/start.h"

namespace shoal::solver {
namespace {

// Names are the paper's. u and v are kept with their lengths beta and alpha, not as unit vectors: that saves
// the passes which would divide them. All but x is in units of start_.scale.
template <class T>
class Lsqr final : public Solver<T> {
 public:
  Lsqr(const AnyOperator<T>& a, const LsqrOptions<T>& options)
      : Solver<T>(a, std::make_unique<Monitor<T>>(a.communicator(), "lsqr", options.max_iterations,
                                                  options.callback, options.show_every)),
        tolerance_(options.tolerance),
        damping_(options.damping),
        domain_(a.domain(), a.communicator().rank()),
        range_(a.range(), a.communicator().rank()),
        sum_(domain_.any_split() || range_.any_split()),
        u_(a.communicator(), a.range()),
        av_(u_),
        v_(a.communicator(), a.domain()),
        ahu_(v_),
        w_(v_) {}

 private:
  using Solver<T>::a_;
  using Solver<T>::result_;
  using Solver<T>::monitor_;
  using R = Real<T>;

  void start(const DistributedArray<T>& b, const DistributedArray<T>* x0) override {
    sum_.use(b.reduction_communicator());
    start_ = begin_residual(a_, b, x0, range_, u_);  // beta u = b - A x0
    beta_ = start_.residual_norm;
    alpha_ = 0;
    if (beta_ > 0 && std::isfinite(beta_)) {
      a_.apply_adjoint(u_, v_);  // alpha v = A^H u
      const auto [vv] = sum_(domain_.axpby_norm2(0, v_, 1 / beta_, v_));
      alpha_ = std::sqrt(vv);
    }
    if (alpha_ > 0) domain_.axpby(1 / alpha_, v_, 0, clear(w_));
    rhobar_ = alpha_;
    phibar_ = beta_;
    damped_squares_ = a_squares_ = 0;
    estimate_ = {};
    set_gradient(alpha_ * beta_);
    const bool converged = beta_ <= tolerance_ * start_.data_norm || alpha_ * beta_ == 0;
    monitor_->begin(result_, {.residual = beta_ * start_.scale,
                              .cost = beta_ * start_.scale,
                              .converged = converged,
                              .suspect = &suspect(start_, b, u_)});
  }

  void iterate() override {
    if (!std::isfinite(alpha_)) return monitor_->stop_non_finite(result_, v_);
    if (!bidiagonalise()) return;
    // A rotation takes the damping off the diagonal, another one beta.
    const double rhobar1 = std::hypot(rhobar_, damping_);
    const double psi = damping_ / rhobar1 * phibar_;
    const double phibar = rhobar_ / rhobar1 * phibar_;
    const double rho = std::hypot(rhobar1, beta_), c = rhobar1 / rho, s = beta_ / rho;
    const double theta = s * alpha_, phi = c * phibar;
    rhobar_ = -c * alpha_;
    phibar_ = s * phibar;
    damped_squares_ += psi * psi;
    update_x(phi / rho, alpha_ > 0 ? 1 / alpha_ : 0, -theta / rho);
    estimate_.add(rho, theta, phi);
    end_iteration(alpha_ * std::abs(s * phi));
  }

  // The next alpha, beta, u and v; false if a norm is not finite.
  bool bidiagonalise() {
    a_.apply(v_, av_);
    const auto [uu] = sum_(range_.axpby_norm2(1 / alpha_, av_, -alpha_ / beta_, u_));  // A v - alpha u
    if (!std::isfinite(uu)) return monitor_->stop_non_finite(result_, u_), false;
    a_squares_ += alpha_ * alpha_ + uu + damping_ * damping_;
    beta_ = std::sqrt(uu);
    if (beta_ == 0) {
      alpha_ = 0;
      return true;
    }
    a_.apply_adjoint(u_, ahu_);
    const auto [vv] = sum_(domain_.axpby_norm2(1 / beta_, ahu_, -beta_ / alpha_, v_));  // A^H u - beta v
    if (!std::isfinite(vv)) return monitor_->stop_non_finite(result_, v_), false;
    alpha_ = std::sqrt(vv);
    return true;
  }

  // x += step w; w = a v + b w
  void update_x(double step, double a, double b) {
    kernels::lsqr_update(R(step * start_.scale), reals(result_.x), R(a), reals(v_), R(b), reals(w_),
                         domain_.count());
  }

  void end_iteration(double gradient) {
    const double damped = std::sqrt(phibar_ * phibar_ + damped_squares_);  // of the system with damping I
    const double x_squares = estimate_.squares;
    const double residual = std::sqrt(std::max(0.0, damped * damped - damping_ * damping_ * x_squares));
    const double a_norm = std::sqrt(a_squares_);
    set_gradient(gradient);
    const bool solved = damped <= tolerance_ * (start_.data_norm + a_norm * std::sqrt(x_squares));
    monitor_->end(result_, {.residual = residual * start_.scale,
                            .cost = damped * start_.scale,
                            .converged = solved || gradient <= tolerance_ * a_norm * damped,
                            .suspect = &result_.x});
  }

  void set_gradient(double gradient) { result_.gradient_norm = gradient * start_.scale; }

  static DistributedArray<T>& clear(DistributedArray<T>& x) {
    x.fill(T(0));
    return x;
  }

  // |x|^2 from the factors, by a rotation from the right that makes them lower bidiagonal (section 5.2).
  struct SolutionNorm {
    double c = -1, s = 0, z = 0;
    double earlier = 0, squares = 0;
    void add(double rho, double theta, double phi) {
      const double delta = s * rho, gammabar = -c * rho, right = phi - delta * z;
      const double last = right / gammabar;
      squares = earlier + last * last;
      const double gamma = std::hypot(gammabar, theta);
      c = gammabar / gamma;
      s = theta / gamma;
      z = right / gamma;
      earlier += z * z;
    }
  };

  double tolerance_, damping_;
  Space<T> domain_, range_;
  Reducer sum_;
  DistributedArray<T> u_, av_, v_, ahu_, w_;
  Start start_;
  double alpha_ = 0, beta_ = 0, rhobar_ = 0, phibar_ = 0;
  double damped_squares_ = 0;  // the sum of psi^2: the part of the residual that damping leaves
  double a_squares_ = 0;       // |A|^2, as seen so far
  SolutionNorm estimate_;
};

}  // namespace

template <class T>
std::unique_ptr<Solver<T>> make_lsqr(const AnyOperator<T>& a, const LsqrOptions<T>& options) {
  return std::make_unique<Lsqr<T>>(a, options);
}

template <class T>
Result<T> lsqr(const AnyOperator<T>& a, const DistributedArray<T>& b, const LsqrOptions<T>& options) {
  return run<T>(make_lsqr(a, options), b, nullptr);
}

template <class T>
Result<T> lsqr(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>& x0,
               const LsqrOptions<T>& options) {
  return run(make_lsqr(a, options), b, &x0);
}

#define SHOAL_INSTANTIATE(T)                                                                             \
  template std::unique_ptr<Solver<T>> make_lsqr(const AnyOperator<T>&, const LsqrOptions<T>&);           \
  template Result<T> lsqr(const AnyOperator<T>&, const DistributedArray<T>&, const LsqrOptions<T>&);     \
  template Result<T> lsqr(const AnyOperator<T>&, const DistributedArray<T>&, const DistributedArray<T>&, \
                          const LsqrOptions<T>&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
