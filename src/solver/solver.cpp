// SPDX-License-Identifier: Apache-2.0
#include "shoal/solver/solver.h"

#include <algorithm>
#include <utility>

#include "solver/monitor.h"

namespace shoal::solver {

template <class T>
Solver<T>::Solver(const AnyOperator<T>& a, std::unique_ptr<Monitor<T>> monitor)
    : a_(a), result_{DistributedArray<T>(a.communicator(), a.domain())}, monitor_(std::move(monitor)) {}

template <class T>
Solver<T>::~Solver() = default;

template <class T>
void Solver<T>::setup_from(const DistributedArray<T>& b, const DistributedArray<T>* x0) {
  require_equal(b.layout(), a_.range(), "the data of a solver and its operator's range");
  if (x0 != nullptr) {
    require_equal(x0->layout(), a_.domain(), "the start of a solver and its operator's domain");
    std::ranges::copy(x0->local(), result_.x.local().begin());
  } else {
    result_.x.fill(T(0));
  }
  result_.x.share_mask(b);
  start(b, x0);
}

template <class T>
void Solver<T>::setup(const DistributedArray<T>& b) {
  setup_from(b, nullptr);
}
template <class T>
void Solver<T>::setup(const DistributedArray<T>& b, const DistributedArray<T>& x0) {
  setup_from(b, &x0);
}

template <class T>
bool Solver<T>::step() {
  if (result_.stop != Stop::none) return false;
  iterate();
  return true;
}

template <class T>
const Result<T>& Solver<T>::finish() & {
  settle();
  monitor_->finish(result_);
  return result_;
}
template <class T>
Result<T> Solver<T>::finish() && {
  settle();
  monitor_->finish(result_);
  return std::move(result_);
}

template class Solver<float>;
template class Solver<double>;
template class Solver<std::complex<float>>;
template class Solver<std::complex<double>>;

}  // namespace shoal::solver
