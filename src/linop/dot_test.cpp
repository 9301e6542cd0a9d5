// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "linop/instantiate.h"
#include "shoal/linop/linear_operator.h"

namespace shoal::linop {
namespace {

template <class T>
DistributedArray<T> random_array(const comm::Communicator& communicator, const Layout& layout,
                                 std::uint64_t seed) {
  DistributedArray<T> x(communicator, layout, array::uninitialised);
  fill_normal(x, seed);
  return x;
}

template <class T>
DistributedArray<T> poisoned_array(const comm::Communicator& communicator, const Layout& layout) {
  DistributedArray<T> x(communicator, layout, array::uninitialised);
  x.fill(T(std::numeric_limits<Real<T>>::quiet_NaN()));
  return x;
}

template <class T>
std::complex<double> to_double(T value) {
  return std::complex<double>(value);
}

template <class T>
double length(const DistributedArray<T>& x) {
  return static_cast<double>(norm(x));
}

}  // namespace

template <class D, class R>
DotTest dot_test(const AnyOperator<D, R>& a, std::uint64_t seed, double tolerance, bool linear_over_reals) {
  comm::Communicator communicator = a.communicator();
  const DistributedArray<D> x = random_array<D>(communicator, a.domain(), seed);
  const DistributedArray<R> y = random_array<R>(communicator, a.range(), seed + 1);
  DistributedArray<R> forward = poisoned_array<R>(communicator, a.range());
  DistributedArray<D> back = poisoned_array<D>(communicator, a.domain());
  a.apply(x, forward);
  a.apply_adjoint(y, back);

  DotTest result{.forward = to_double(dot(forward, y)), .adjoint = to_double(dot(x, back))};
  if (linear_over_reals) {
    result.forward = result.forward.real();
    result.adjoint = result.adjoint.real();
  }
  const double scale = std::max(length(forward) * length(y), length(x) * length(back));
  const double distance = std::abs(result.forward - result.adjoint);
  // A NaN anywhere must end as one: std::max above may drop it.
  result.error = distance == 0 ? 0 : distance / scale;
  if (tolerance == 0) tolerance = 100 * static_cast<double>(std::numeric_limits<Real<D>>::epsilon());
  // Ranks may differ where an output that should be replicated is not.
  result.passed = communicator.all_reduce(result.error <= tolerance ? 1 : 0, comm::Reduction::min) == 1;
  return result;
}

#define SHOAL_INSTANTIATE(D, R) \
  template DotTest dot_test(const AnyOperator<D, R>&, std::uint64_t, double, bool);
SHOAL_LINOP_PAIRS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
