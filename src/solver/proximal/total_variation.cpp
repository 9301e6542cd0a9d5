// SPDX-License-Identifier: Apache-2.0
// Total variation of an image. Its proximal operator by the dual problem: with r = tau sigma,
//
//   z = x - D^H p,  p = argmin of |x - D^H p|^2 / 2 over p whose vectors are no longer than r,
//
// by fast gradient projection. How far z is from the minimiser is known: the duality gap
// r |D z|_21 - re<D z, p> is at least |z - minimiser|^2 / 2.
#include <cmath>
#include <limits>
#include <memory>

#include "shoal/solver/proximal/functions.h"
#include "solver/proximal/lengths.h"
#include "solver/proximal/support.h"
#include "solver/run.h"

namespace shoal::solver {
namespace {

constexpr int iterations_between_gaps = 10;

template <class T>
class Variation {
 public:
  using value_type = T;
  using Array = DistributedArray<T>;

  Variation(const AnyOperator<T>& gradient, const TotalVariation& options)
      : d_(gradient),
        o_(options),
        step_(options.step > 0 ? options.step : step_for(gradient, options.power)),
        domain_(d_.domain(), d_.communicator().rank()),
        range_(d_.range(), d_.communicator().rank()),
        reduce_(domain_.any_split() || range_.any_split()),
        z_(d_.communicator(), d_.domain()),
        p_(d_.communicator(), d_.range()),
        q_(p_),
        next_(p_) {}

  LocalSum local_value(const Array& x) const {
    check_layout(x);
    d_.apply(x, next_);
    return o_.sigma * lengths::sum(member_, next_);
  }

  void prox(const Array& x, double tau, Array& out) const {
    check_layout(x);
    reduce_.use(x.reduction_communicator());
    const auto [square] = reduce_(domain_.norm2(x));
    if (!std::isfinite(square)) {  // the caller is to see it, the next call not to begin there
      out.fill(T(std::numeric_limits<Real<T>>::quiet_NaN()));
      return;
    }
    const double radius = tau * o_.sigma;
    if (!o_.warm) p_.fill(T(0));
    project(radius, p_);
    range_.axpby(1, p_, 0, q_);
    double t = 1;
    for (int i = 0; i < o_.iterations; ++i) {
      if (i % iterations_between_gaps == 0 && near_enough(x, radius, square)) break;
      set_primal(x, q_);
      d_.apply(z_, next_);
      range_.axpby(1, q_, step_, next_);
      project(radius, next_);
      const double t_next = (1 + std::sqrt(1 + 4 * t * t)) / 2;
      extrapolate(range_, (t - 1) / t_next, next_, p_, q_);
      t = t_next;
    }
    set_primal(x, p_);
    copy_elements(z_, out);
  }

 private:
  static double step_for(const AnyOperator<T>& gradient, const PowerOptions& power) {
    const double norm2 = largest_squared_singular_value(gradient, power);
    return norm2 > 0 ? 0.95 / norm2 : 1;  // 0: images too small to vary
  }
  void check_layout(const Array& x) const {
    require_equal(x.layout(), d_.domain(), "an array given to total_variation and the gradient's domain");
  }
  void set_primal(const Array& x, const Array& dual) const {
    d_.apply_adjoint(dual, z_);
    domain_.axpby(1, x, -1, z_);
  }
  static void project(double radius, Array& dual) {
    lengths::scale(
        dual, [radius](double* squares, std::size_t n) { kernels::limit_factors(radius, squares, n); }, dual);
  }
  // Whether the z of p is within tolerance |x| of the minimiser.
  bool near_enough(const Array& x, double radius, double square) const {
    if (o_.tolerance == 0) return false;
    set_primal(x, p_);
    d_.apply(z_, next_);
    const auto [gap] = reduce_(radius * lengths::sum(member_, next_) + -1.0 * range_.dot(next_, p_));
    return 2 * gap < o_.tolerance * o_.tolerance * square;
  }

  AnyOperator<T> d_;
  TotalVariation o_;
  double step_;
  Space<T> domain_, range_;
  mutable SpaceOf<T> member_;
  mutable Reducer reduce_;
  mutable Array z_, p_, q_, next_;
};

}  // namespace

template <class T>
AnyProximal<T> total_variation(const AnyOperator<T>& gradient, const TotalVariation& options) {
  lengths::check(gradient.range(), "total_variation");
  if (!(options.sigma >= 0) || !std::isfinite(options.sigma) || options.iterations < 0 ||
      !(options.tolerance >= 0) || !(options.step >= 0))
    fail(ErrorCode::invalid_argument,
         fmt::format("total_variation: sigma is {}, iterations {}, tolerance {}, step {}; give 0 or more",
                     options.sigma, options.iterations, options.tolerance, options.step));
  return Variation<T>(gradient, options);
}

#define SHOAL_INSTANTIATE(T) \
  template AnyProximal<T> total_variation(const AnyOperator<T>&, const TotalVariation&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
