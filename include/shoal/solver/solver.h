// SPDX-License-Identifier: Apache-2.0
// An iterative method for A x = b, for those who want the loop:
//
//   auto solver = make_cgls(A, {.max_iterations = 50});
//   solver->setup(b);
//   while (solver->step()) look_at(solver->result());
//   Result<double> result = std::move(*solver).finish();
//
// The function cgls(A, b, options) is this loop, with the same bits. All memory is allocated when the solver
// is made, so that one solver serves many right-hand sides. Every call is collective over the operator's
// communicator, but for result(). Sums are equal on every rank.
//
// If `b` has a mask, sums run within its groups, each of which solves its own problem and stops on its own:
// the operator must not communicate beyond them.
#pragma once

#include <memory>

#include "shoal/linop/linear_operator.h"
#include "shoal/solver/result.h"

namespace shoal::solver {

using linop::AnyOperator;

template <class T>
class Monitor;

template <class T>
class Solver {
 public:
  virtual ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  /// Begins at x = 0, or at a copy of `x0`. Neither array is changed, nor looked at later.
  void setup(const DistributedArray<T>& b);
  void setup(const DistributedArray<T>& b, const DistributedArray<T>& x0);
  /// One iteration; false when the method has stopped (it may have before the first).
  bool step();
  /// How far it has come; x is the current one. Local. (Not const: what an iteration has put off to the next
  /// one, to save a pass through memory, is done now.)
  const Result<T>& result() {
    settle();
    return result_;
  }
  /// The same, after the last step: ends the line of progress.
  const Result<T>& finish() &;
  Result<T> finish() &&;

 protected:
  Solver(const AnyOperator<T>& a, std::unique_ptr<Monitor<T>> monitor);

  AnyOperator<T> a_;
  Result<T> result_;
  std::unique_ptr<Monitor<T>> monitor_;

 private:
  // Prepares the first iteration; `x0` is null where x begins at zero. Ends with monitor_->begin().
  virtual void start(const DistributedArray<T>& b, const DistributedArray<T>* x0) = 0;
  // Ends with monitor_->end(), or a stop of another kind.
  virtual void iterate() = 0;
  // Brings result_.x up to date. Local.
  virtual void settle() {}

  void setup_from(const DistributedArray<T>& b, const DistributedArray<T>* x0);
};

}  // namespace shoal::solver
