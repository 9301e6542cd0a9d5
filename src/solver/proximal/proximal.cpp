// SPDX-License-Identifier: Apache-2.0
#include "shoal/solver/proximal/proximal.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "shoal/base/error.h"
#include "solver/run.h"

namespace shoal::solver {
namespace {

template <class T>
void check(const DistributedArray<T>& x, double tau, const DistributedArray<T>& out) {
  if (!(tau > 0) || !std::isfinite(tau))
    fail(ErrorCode::invalid_argument, fmt::format("a proximal operator: tau is {}; give more than 0", tau));
  require_equal(x.layout(), out.layout(), "the input and the output of a proximal operator");
}

template <class T>
void require_apart(const DistributedArray<T>& x, const DistributedArray<T>& out, const char* what) {
  if (!x.local().empty() && x.local().data() == out.local().data())
    fail(ErrorCode::invalid_argument, fmt::format("{}: input and output are one array; give two", what));
}

}  // namespace

template <class T>
double AnyProximal<T>::value(const Array& x) const {
  const LocalSum sum = local_value(x);
  comm::Communicator communicator = x.reduction_communicator();
  return communicator.all_reduce(sum.split, comm::Reduction::sum) + sum.replicated;
}

template <class T>
void AnyProximal<T>::prox(const Array& x, double tau, Array& out) const {
  check(x, tau, out);
  self_->prox(x, tau, out);
}

template <class T>
void AnyProximal<T>::prox_dual(const Array& x, double tau, Array& out) const {
  check(x, tau, out);
  require_apart(x, out, "a dual proximal operator");
  const auto factor = static_cast<array::Real<T>>(tau);
  axpby(T(1 / factor), x, T(0), out);
  self_->prox(out, 1 / tau, out);
  axpby(T(1), x, T(-factor), out);
}

template <class T>
LocalSum AnyProximal<T>::gradient(const Array& x, Array& out) const {
  if (!has_gradient())
    fail(ErrorCode::unsupported, "a function without a gradient where a smooth one is needed");
  require_equal(x.layout(), out.layout(), "the input and the output of a gradient");
  require_apart(x, out, "a gradient");
  return self_->gradient(x, out);
}

#define SHOAL_INSTANTIATE(T) template class AnyProximal<T>;
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
