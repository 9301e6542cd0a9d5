// SPDX-License-Identifier: Apache-2.0
#include "solver/start.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/run.h"

namespace shoal::solver {
namespace {

// A power of two near `norm`, whose inverse is a number too.
template <class R>
double unit_near(double norm) {
  if (norm == 0 || !std::isfinite(norm)) return 1;
  constexpr int most = std::numeric_limits<R>::max_exponent - 4;
  return std::ldexp(1.0, std::clamp(std::ilogb(norm), -most, most));
}

}  // namespace

template <class T>
Start begin_residual(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>* x0,
                     const Space<T>& range, DistributedArray<T>& r) {
  Start start;
  start.data_norm = start.residual_norm = norm(b);
  if (x0 == nullptr) {
    std::ranges::copy(b.local(), r.local().begin());
  } else {
    a.apply(*x0, r);
    range.axpby(1, b, -1, r);
    r.share_mask(b);
    start.residual_norm = norm(r);
  }
  start.scale = unit_near<Real<T>>(std::max(start.data_norm, start.residual_norm));
  range.axpby(1 / start.scale, r, 0, r);
  start.data_norm /= start.scale;
  start.residual_norm /= start.scale;
  return start;
}

template <class T>
const DistributedArray<T>& suspect(const Start& start, const DistributedArray<T>& b,
                                   const DistributedArray<T>& r) {
  return std::isfinite(start.data_norm) ? r : b;
}

#define SHOAL_INSTANTIATE(T)                                                                        \
  template Start begin_residual(const AnyOperator<T>&, const DistributedArray<T>&,                  \
                                const DistributedArray<T>*, const Space<T>&, DistributedArray<T>&); \
  template const DistributedArray<T>& suspect(const Start&, const DistributedArray<T>&,             \
                                              const DistributedArray<T>&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
