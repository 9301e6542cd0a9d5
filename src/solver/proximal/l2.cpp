// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "shoal/base/error.h"
#include "shoal/solver/cgls.h"
#include "shoal/solver/proximal/functions.h"
#include "solver/proximal/scaled_system.h"
#include "solver/proximal/space_of.h"
#include "solver/run.h"

namespace shoal::solver {
namespace {

// What `problem` leaves out is left out of the sums.
template <class T>
class SquaredDistance {
 public:
  using value_type = T;
  using Array = DistributedArray<T>;

  explicit SquaredDistance(const L2<T>& problem) : p_(problem) {
    if (p_.op)
      r_.emplace(p_.op->communicator(), p_.op->range());
    else if (p_.b)
      r_.emplace(*p_.b);
  }

  LocalSum local_value(const Array& x) const { return value_at(x, residual(x)); }

  LocalSum gradient(const Array& x, Array& out) const {
    const Array& r = residual(x);
    const Space<T>& domain = domain_(x);
    if (p_.op)
      p_.op->apply_adjoint(r, out);
    else
      copy_elements(r, out);
    if (p_.q)
      domain.axpby(p_.alpha, *p_.q, p_.sigma, out);
    else
      domain.axpby(0, out, p_.sigma, out);
    return value_at(x, r);
  }

 protected:
  void check_layout(const Array& x) const {
    if (p_.op)
      return require_equal(x.layout(), p_.op->domain(), "an array given to l2 and the operator's domain");
    if (p_.b) require_equal(x.layout(), p_.b->layout(), "an array given to l2 and its b");
    if (p_.q) require_equal(x.layout(), p_.q->layout(), "an array given to l2 and its q");
  }
  const Array& residual(const Array& x) const {
    check_layout(x);
    if (!p_.op && !p_.b) return x;
    if (p_.op)
      p_.op->apply(x, *r_);
    else
      copy_elements(x, *r_);
    if (p_.b) range_(*r_).axpby(-1, *p_.b, 1, *r_);
    return *r_;
  }
  LocalSum value_at(const Array& x, const Array& r) const {
    LocalSum sum = p_.sigma / 2 * range_(r).norm2(r);
    if (p_.q) sum += p_.alpha * domain_(x).dot(*p_.q, x);
    return sum;
  }

  L2<T> p_;
  mutable std::optional<Array> r_;
  mutable SpaceOf<T> domain_, range_;
};

// Without an operator: (x + tau (sigma b - alpha q)) / (1 + tau sigma).
template <class T>
class Plain : public SquaredDistance<T> {
 public:
  using Array = DistributedArray<T>;
  using SquaredDistance<T>::SquaredDistance;

  void prox(const Array& x, double tau, Array& out) const {
    this->check_layout(x);
    copy_elements(x, out);
    const Space<T>& space = this->domain_(out);
    const L2<T>& p = this->p_;
    const double factor = 1 / (1 + tau * p.sigma);
    if (p.q) space.axpby(-tau * p.alpha, *p.q, 1, out);
    space.axpby(p.b ? factor * tau * p.sigma : 0, p.b ? *p.b : out, factor, out);
  }
};

template <class T>
class WithOperator : public SquaredDistance<T> {
 public:
  using Array = DistributedArray<T>;

  explicit WithOperator(const L2<T>& problem)
      : SquaredDistance<T>(problem), scale_(std::make_shared<double>(1)), last_(zeros()) {
    const AnyOperator<T>& op = *problem.op;
    const bool normal = problem.solver == L2Solver::cg;
    const AnyOperator<T> system =
        normal ? scaled_normal<T>(op, scale_) : scaled_system<T>(op, std::nullopt, scale_);
    right_.emplace(op.communicator(), system.range());
    if (normal)
      solver_ = make_cg<T>(system, {.max_iterations = problem.iterations, .tolerance = problem.tolerance});
    else
      solver_ = make_cgls<T>(system, {.max_iterations = problem.iterations, .tolerance = problem.tolerance});
    if (normal && problem.b) adjoint_b_ = op.adjoint_of(*problem.b);
    begin_anew();
  }

  void prox(const Array& x, double tau, Array& out) const {
    this->check_layout(x);
    set_right_side(x, tau);
    solver_->setup(*right_, last_);
    const L2<T>& p = this->p_;
    const int iterations = p.iterations_of_call ? p.iterations_of_call(calls_++) : p.iterations;
    for (int i = 0; i < iterations && solver_->step();) ++i;
    const Result<T>& result = solver_->result();
    if (result.stop == Stop::non_finite) {  // the caller is to see it, the next call not to begin there
      out.fill(T(std::numeric_limits<Real<T>>::quiet_NaN()));
      begin_anew();
      return;
    }
    copy_elements(result.x, out);
    if (p.warm) copy_elements(result.x, last_);
  }

 private:
  Array zeros() const { return Array(this->p_.op->communicator(), this->p_.op->domain()); }

  void begin_anew() const {
    if (this->p_.start)
      copy_elements(*this->p_.start, last_);
    else
      last_.fill(T(0));
  }

  void set_right_side(const Array& x, double tau) const {
    const L2<T>& p = this->p_;
    const bool normal = p.solver == L2Solver::cg;
    const double square = tau * p.sigma;
    *scale_ = normal ? square : std::sqrt(square);
    right_->share_mask(x);
    Array& y = normal ? *right_ : right_->member(1);
    copy_elements(x, y);
    const Space<T>& space = this->domain_(x);
    if (p.q) space.axpby(-tau * p.alpha, *p.q, 1, y);
    if (!p.b) return;
    if (normal)
      space.axpby(square, *adjoint_b_, 1, y);
    else
      this->range_(*p.b).axpby(*scale_, *p.b, 0, right_->member(0));
  }

  std::shared_ptr<double> scale_;  // of the system, shared with it
  mutable Array last_;
  mutable std::optional<Array> right_;
  std::optional<Array> adjoint_b_;  // Op^H b, for CG
  std::shared_ptr<Solver<T>> solver_;
  mutable int calls_ = 0;
};

template <class T>
void check(const L2<T>& p) {
  if (!(p.sigma >= 0) || !std::isfinite(p.sigma) || p.iterations < 0 || !(p.tolerance >= 0))
    fail(ErrorCode::invalid_argument,
         fmt::format("l2: sigma is {}, iterations {}, tolerance {}; give 0 or more", p.sigma, p.iterations,
                     p.tolerance));
  if (!p.op) return;
  if (p.b) require_equal(p.op->range(), p.b->layout(), "l2: the operator's range and b");
  if (p.q) require_equal(p.op->domain(), p.q->layout(), "l2: the operator's domain and q");
  if (p.start) require_equal(p.op->domain(), p.start->layout(), "l2: the operator's domain and the start");
}

}  // namespace

template <class T>
AnyProximal<T> l2(const L2<T>& problem) {
  check(problem);
  if (problem.op) return WithOperator<T>(problem);
  return Plain<T>(problem);
}

#define SHOAL_INSTANTIATE(T) template AnyProximal<T> l2(const L2<T>&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
