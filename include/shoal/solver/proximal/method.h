// SPDX-License-Identifier: Apache-2.0
// What the proximal methods share: an iteration in x, and of some in an auxiliary array too.
//
//   auto method = make_admm_l2(g, op, b, a, {.tau = 0.1});
//   method->setup(x0);
//   while (method->step()) look_at(method->result());
//   ProximalResult<double> result = std::move(*method).finish();
//
// The function admm_l2(g, op, b, a, x0, options) is this loop, with the same bits. All memory is allocated
// when the method is made. Every call is collective, but for result(). Sums run where those of x0 do (its
// mask).
#pragma once

#include <memory>
#include <optional>

#include "shoal/solver/proximal/proximal.h"
#include "shoal/solver/result.h"

namespace shoal::solver {

template <class T>
class Monitor;

/// history: the objective, infinite where a constraint is not met; residual_norm: each method's header says.
template <class T>
struct ProximalResult : Result<T> {
  /// ADMM's z, primal-dual's y.
  std::optional<DistributedArray<T>> auxiliary{};
};

template <class T>
class ProximalMethod {
 public:
  virtual ~ProximalMethod();
  ProximalMethod(const ProximalMethod&) = delete;
  ProximalMethod& operator=(const ProximalMethod&) = delete;

  /// Begins at copies of the arrays. Without the second the method chooses the auxiliary array's start.
  void setup(const DistributedArray<T>& x0);
  void setup(const DistributedArray<T>& x0, const DistributedArray<T>& auxiliary0);
  /// One iteration; false when the method has stopped (it may have before the first).
  bool step();
  const ProximalResult<T>& result() const { return result_; }
  /// The same, after the last step: ends the line of progress.
  const ProximalResult<T>& finish() &;
  ProximalResult<T> finish() &&;

 protected:
  ProximalMethod(ProximalResult<T> empty, std::unique_ptr<Monitor<T>> monitor);

  ProximalResult<T> result_;
  std::unique_ptr<Monitor<T>> monitor_;

 private:
  // result_.x is set; result_.auxiliary too, if `auxiliary_given`. Ends with monitor_->begin().
  virtual void start(bool auxiliary_given) = 0;
  // Ends with monitor_->end(), or a stop of another kind.
  virtual void iterate() = 0;
};

}  // namespace shoal::solver
