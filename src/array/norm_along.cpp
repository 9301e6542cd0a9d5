// SPDX-License-Identifier: Apache-2.0
// Norms along one axis.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "array/magnitudes.h"
#include "shoal/array/distributed_array.h"
#include "shoal/base/error.h"

namespace shoal::array {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

int parts_along(const Layout& layout, int axis) { return static_cast<int>(layout.extents(axis).size()); }

// The layout without `axis`.
Layout remaining(const Layout& layout, int axis) {
  Shape shape = layout.shape();
  shape.erase(shape.begin() + axis);
  if (layout.is_replicated() || layout.split_axis() == axis || shape.empty())
    return Layout::replicated(std::move(shape), layout.ranks());
  if (parts_along(layout, axis) > 1)
    fail(ErrorCode::unsupported,
         fmt::format("norm_along axis {} of {}: redistribute it so that one axis is split", axis,
                     layout.describe()));
  std::vector<std::vector<Index>> extents;
  for (int a = 0; a < layout.axes(); ++a)
    if (a != axis) extents.emplace_back(layout.extents(a).begin(), layout.extents(a).end());
  return Layout::blocks_unevenly(std::move(shape), std::move(extents));
}

// Reduces the local block along an axis, [outer, length, inner], and then among ranks where that axis is
// split.
template <class T>
class AxisReduction {
 public:
  AxisReduction(const DistributedArray<T>& x, int axis) : x_(x), communicator_(x.reduction_communicator()) {
    const Shape shape = x.local_shape();
    outer_ = size_of_shape(std::span(shape).first(at(axis)));
    length_ = shape[at(axis)];
    inner_ = size_of_shape(std::span(shape).subspan(at(axis) + 1));
    split_ = !x.layout().is_replicated() && x.layout().split_axis() == axis;
  }
  std::size_t results() const { return at(outer_ * inner_); }

  /// Sum of term(element, number of the result).
  template <class Term>
  std::vector<double> sum(const Term& term) {
    std::vector<double> sums(results(), 0.0);
    for_each([&](const T& value, std::size_t k) { sums[k] += term(value, k); });
    if (split_) communicator_.all_reduce(sums, comm::Reduction::sum);
    return sums;
  }

  /// Largest or smallest magnitudes; NaN where there is one.
  std::vector<double> extremes(bool largest) {
    const double sign = largest ? 1 : -1;
    std::vector<double> found(2 * results(), 0.0);  // values, then ones where there is a NaN
    std::fill_n(found.begin(), results(), largest ? 0 : -infinity);
    for_each([&](const T& value, std::size_t k) {
      const double m = magnitude(value);
      if (std::isnan(m))
        found[results() + k] = 1;
      else
        found[k] = std::max(found[k], sign * m);
    });
    if (split_) communicator_.all_reduce(found, comm::Reduction::max);
    for (std::size_t k = 0; k < results(); ++k)
      found[k] = found[results() + k] > 0 ? std::numeric_limits<double>::quiet_NaN() : sign * found[k];
    found.resize(results());
    return found;
  }

  std::vector<double> power_norms(double p) {
    std::vector<double> sums = sum([p](const T& value, std::size_t) { return power(magnitude(value), p); });
    // Where the axis is split all ranks have the same sums, and go the same way.
    const bool safe =
        std::all_of(sums.begin(), sums.end(), [](double s) { return std::isnan(s) || is_safe_sum(s); });
    std::vector<double> factors(results(), 1.0), scales;
    if (!safe) {
      scales = extremes(p > 0);
      for (std::size_t k = 0; k < results(); ++k)
        if (scales[k] > 0 && std::isfinite(scales[k])) factors[k] = scaling_factor(scales[k]);
      sums = sum([&](const T& value, std::size_t k) { return power(magnitude(value) * factors[k], p); });
    }
    for (std::size_t k = 0; k < results(); ++k) {
      const bool plain = safe || (scales[k] > 0 && std::isfinite(scales[k]));
      sums[k] = plain ? root(sums[k], p) / factors[k] : scales[k];
    }
    return sums;
  }

 private:
  template <class Visit>
  void for_each(const Visit& visit) const {
    const T* value = x_.local().data();
    for (Index o = 0; o < outer_; ++o)
      for (Index l = 0; l < length_; ++l)
        for (Index i = 0; i < inner_; ++i) visit(*value++, at(o * inner_ + i));
  }

  const DistributedArray<T>& x_;
  comm::Communicator communicator_;
  Index outer_ = 0, length_ = 0, inner_ = 0;
  bool split_ = false;
};

}  // namespace

template <class T>
DistributedArray<Real<T>> norm_along(const DistributedArray<T>& x, int axis, Norm which) {
  const int axes = x.layout().axes();
  if (axis < -axes || axis >= axes)
    fail(ErrorCode::invalid_argument, fmt::format("norm_along axis {} of {}", axis, x.layout().describe()));
  if (axis < 0) axis += axes;
  const Norm::Kind kind = checked_kind(which);
  DistributedArray<Real<T>> result(x.communicator(), remaining(x.layout(), axis), uninitialised);
  result.share_mask(x);
  AxisReduction<T> reduction(x, axis);
  const std::vector<double> norms =
      kind == Norm::Kind::p ? reduction.power_norms(which.p)
      : kind == Norm::Kind::count
          ? reduction.sum([](const T& v, std::size_t) { return v != T(0) ? 1.0 : 0.0; })
          : reduction.extremes(kind == Norm::Kind::largest);
  std::transform(norms.begin(), norms.end(), result.local().begin(),
                 [](double v) { return static_cast<Real<T>>(v); });
  return result;
}

template DistributedArray<float> norm_along(const DistributedArray<float>&, int, Norm);
template DistributedArray<double> norm_along(const DistributedArray<double>&, int, Norm);
template DistributedArray<float> norm_along(const DistributedArray<std::complex<float>>&, int, Norm);
template DistributedArray<double> norm_along(const DistributedArray<std::complex<double>>&, int, Norm);

}  // namespace shoal::array
