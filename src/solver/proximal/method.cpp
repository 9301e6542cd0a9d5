// SPDX-License-Identifier: Apache-2.0
#include "shoal/solver/proximal/method.h"

#include <algorithm>
#include <utility>

#include "shoal/base/error.h"
#include "solver/monitor.h"
#include "solver/run.h"

namespace shoal::solver {

template <class T>
ProximalMethod<T>::ProximalMethod(ProximalResult<T> empty, std::unique_ptr<Monitor<T>> monitor)
    : result_(std::move(empty)), monitor_(std::move(monitor)) {}

template <class T>
ProximalMethod<T>::~ProximalMethod() = default;

template <class T>
void ProximalMethod<T>::setup(const DistributedArray<T>& x0) {
  require_equal(x0.layout(), result_.x.layout(), "the start of a proximal method and its problem");
  std::ranges::copy(x0.local(), result_.x.local().begin());
  result_.x.share_mask(x0);
  if (result_.auxiliary) result_.auxiliary->share_mask(x0);
  start(false);
}

template <class T>
void ProximalMethod<T>::setup(const DistributedArray<T>& x0, const DistributedArray<T>& auxiliary0) {
  require_equal(x0.layout(), result_.x.layout(), "the start of a proximal method and its problem");
  if (!result_.auxiliary)
    fail(ErrorCode::invalid_argument,
         "a start for an auxiliary array that the proximal method does not have");
  require_equal(auxiliary0.layout(), result_.auxiliary->layout(), "the auxiliary start of a proximal method");
  std::ranges::copy(x0.local(), result_.x.local().begin());
  std::ranges::copy(auxiliary0.local(), result_.auxiliary->local().begin());
  result_.x.share_mask(x0);
  result_.auxiliary->share_mask(x0);
  start(true);
}

template <class T>
bool ProximalMethod<T>::step() {
  if (result_.stop != Stop::none) return false;
  iterate();
  return true;
}

template <class T>
const ProximalResult<T>& ProximalMethod<T>::finish() & {
  monitor_->finish(result_);
  return result_;
}
template <class T>
ProximalResult<T> ProximalMethod<T>::finish() && {
  monitor_->finish(result_);
  return std::move(result_);
}

#define SHOAL_INSTANTIATE(T) template class ProximalMethod<T>;
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
