// SPDX-License-Identifier: Apache-2.0
// What both variants of CGLS share: r = b - A x, the gradient s = A^H r - damping^2 x, and when to stop.
#pragma once

#include <memory>

#include "shoal/solver/cgls.h"
#include "solver/monitor.h"
#include "solver/start.h"

namespace shoal::solver {

template <class T>
class LeastSquares : public Solver<T> {
 protected:
  LeastSquares(const AnyOperator<T>& a, const char* name, const CglsOptions<T>& options);

  using Solver<T>::a_;
  using Solver<T>::result_;
  using Solver<T>::monitor_;

  // x += step p; the sum of the squares of x / b_unit_, if damped (else nobody needs it). Of the reals
  // [begin, end).
  LocalSum update_x(double step, const DistributedArray<T>& p, std::size_t begin, std::size_t end);
  // s -= damping^2 x; the sum of its squares. `s`: the reals [begin, end).
  LocalSum damp_gradient(Real<T>* s, std::size_t begin, std::size_t end);
  // s = A^H r - damping^2 x; the sum of its squares.
  LocalSum compute_gradient();
  void end_iteration();

  double tolerance_, damping2_;
  Space<T> domain_, range_;
  Reducer sum_;
  DistributedArray<T> r_, s_;  // in units of b_unit_
  double b_unit_ = 1;
  double gamma_ = 0, rr_ = 0, xx_ = 0;  // s.s, r.r, and x.x / b_unit_^2 (if damped)

 private:
  void start(const DistributedArray<T>& b, const DistributedArray<T>* x0) final;
  // When r, s and their sums are set.
  virtual void begin_directions() = 0;
  virtual void keep_data(const DistributedArray<T>&) {}
  typename Monitor<T>::Norms norms();

  Start start_;
  double gradient_at_zero_ = 0;  // |A^H b|
};

template <class T>
std::unique_ptr<Solver<T>> make_pipelined_cgls(const AnyOperator<T>& a, const CglsOptions<T>& options);

}  // namespace shoal::solver
