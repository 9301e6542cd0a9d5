// SPDX-License-Identifier: Apache-2.0
// What the proximal methods have in common besides ProximalMethod.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "shoal/solver/proximal/method.h"
#include "solver/kernels.h"
#include "solver/space.h"

namespace shoal::solver {

/// x = to; the sums of squares of their distance and of the new x.
template <class T>
LocalSums move_to(const Space<T>& space, const DistributedArray<T>& to, DistributedArray<T>& x) {
  return space.two_sums([&](std::size_t i, std::size_t n) {
    return kernels::extrapolate(Real<T>(0), reals(to) + i, reals(x) + i, reals(x) + i, n);
  });
}

/// beyond = to + m (to - x); x = to; the sums of squares of to - x before and of to. `beyond` may be `x`.
template <class T>
LocalSums extrapolate(const Space<T>& space, double m, const DistributedArray<T>& to, DistributedArray<T>& x,
                      DistributedArray<T>& beyond) {
  return space.two_sums([&](std::size_t i, std::size_t n) {
    return kernels::extrapolate(static_cast<Real<T>>(m), reals(to) + i, reals(x) + i, reals(beyond) + i, n);
  });
}

/// The number of iteration `i`, counted from 0; the last one holds on.
inline double of_iteration(const std::vector<double>& numbers, int i) {
  return numbers[std::min(static_cast<std::size_t>(i), numbers.size() - 1)];
}

/// To the end. `auxiliary0` is null where the method chooses.
template <class T>
ProximalResult<T> run(std::unique_ptr<ProximalMethod<T>> method, const DistributedArray<T>& x0,
                      const DistributedArray<T>* auxiliary0 = nullptr) {
  if (auxiliary0 == nullptr)
    method->setup(x0);
  else
    method->setup(x0, *auxiliary0);
  while (method->step()) {
  }
  return std::move(*method).finish();
}

}  // namespace shoal::solver
