// SPDX-License-Identifier: Apache-2.0
// The norms of whole arrays.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "array/kernels.h"
#include "array/magnitudes.h"
#include "array/sums.h"
#include "shoal/array/distributed_array.h"
#include "shoal/base/error.h"

namespace shoal::array {
namespace {

template <class T>
double local_squares(const T* x, std::size_t n, double factor) {
  const auto* reals = reinterpret_cast<const Real<T>*>(x);
  if constexpr (is_complex<T>) n *= 2;
  return factor == 1 ? kernels::sum_squares(reals, n) : kernels::sum_squares_scaled(factor, reals, n);
}

template <class T>
double local_powers(const T* x, std::size_t n, double p, double factor) {
  if (p == 2) return local_squares(x, n, factor);
  if constexpr (!is_complex<T>)
    if (p == 1 && factor == 1) return kernels::sum_magnitudes(x, n);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += power(magnitude(x[i]) * factor, p);
  return sum;
}

template <class T>
double local_count(const T* x, std::size_t n) {
  return static_cast<double>(std::count_if(x, x + n, [](const T& v) { return v != T(0); }));
}

template <class T>
kernels::Extreme local_largest(const T* x, std::size_t n) {
  if constexpr (!is_complex<T>) {
    return kernels::largest_magnitude(x, n);
  } else {
    kernels::Extreme extreme;
    for (std::size_t i = 0; i < n; ++i) {
      const double m = magnitude(x[i]);
      extreme.nan = extreme.nan || std::isnan(m);
      extreme.value = std::fmax(extreme.value, m);
    }
    return extreme;
  }
}

template <class T>
kernels::Extreme local_smallest(const T* x, std::size_t n) {
  kernels::Extreme extreme{infinity, false};
  for (std::size_t i = 0; i < n; ++i) {
    const double m = magnitude(x[i]);
    extreme.nan = extreme.nan || std::isnan(m);
    extreme.value = std::fmin(extreme.value, m);
  }
  return extreme;
}

// Collective: the largest or smallest magnitude, or NaN where there is one.
template <class T>
double extreme(const DistributedArray<T>& x, bool largest) {
  // Both values are found by one reduction: the smallest as the largest of the negated, NaNs as a 1.
  double split[2] = {largest ? 0 : -infinity, 0}, replicated[2] = {split[0], 0};
  bool any_split = false;
  for_each_part(x.layout(), x.rank(), [&](const Layout& part, std::size_t first, std::size_t count) {
    any_split = any_split || !part.is_replicated();
    double* into = part.is_replicated() ? replicated : split;
    const T* begin = x.local().data() + first;
    const kernels::Extreme found = largest ? local_largest(begin, count) : local_smallest(begin, count);
    into[0] = std::max(into[0], largest ? found.value : -found.value);
    into[1] = std::max(into[1], found.nan ? 1.0 : 0.0);
  });
  if (any_split) {
    comm::Communicator communicator = x.reduction_communicator();
    communicator.all_reduce(std::span(split), comm::Reduction::max);
  }
  if (split[1] > 0 || replicated[1] > 0) return std::numeric_limits<double>::quiet_NaN();
  const double value = std::max(split[0], replicated[0]);
  return largest ? value : -value;
}

// Collective: (sum of |x|^p)^(1/p), where p is neither 0 nor infinite.
template <class T>
double power_norm(const DistributedArray<T>& x, double p) {
  const auto sum = [&](double factor) {
    return global_sum(local_sum<double>(x.layout(), x.rank(),
                                        [&](std::size_t first, std::size_t count) {
                                          return local_powers(x.local().data() + first, count, p, factor);
                                        }),
                      x.reduction_communicator());
  };
  // All ranks have the same sum, so they agree on what to do next.
  const double plain = sum(1);
  if (std::isnan(plain) || is_safe_sum(plain)) return root(plain, p);
  const double scale = extreme(x, p > 0);
  if (scale == 0 || !std::isfinite(scale)) return scale;
  const double factor = scaling_factor(scale);
  return root(sum(factor), p) / factor;
}

}  // namespace

template <class T>
Real<T> norm(const DistributedArray<T>& x, Norm which) {
  using R = Real<T>;
  const Norm::Kind kind = checked_kind(which);
  switch (kind) {
    case Norm::Kind::p: return static_cast<R>(power_norm(x, which.p));
    case Norm::Kind::largest: return static_cast<R>(extreme(x, true));
    case Norm::Kind::smallest: return static_cast<R>(extreme(x, false));
    case Norm::Kind::count: break;
  }
  return static_cast<R>(global_sum(local_sum<double>(x.layout(), x.rank(),
                                                     [&](std::size_t first, std::size_t count) {
                                                       return local_count(x.local().data() + first, count);
                                                     }),
                                   x.reduction_communicator()));
}

template float norm(const DistributedArray<float>&, Norm);
template double norm(const DistributedArray<double>&, Norm);
template float norm(const DistributedArray<std::complex<float>>&, Norm);
template double norm(const DistributedArray<std::complex<double>>&, Norm);

}  // namespace shoal::array
