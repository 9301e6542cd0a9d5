// SPDX-License-Identifier: Apache-2.0
#include "linop/band.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::linop {

Band::Band(Index n, Index margin, const std::function<std::vector<Tap>(Index)>& row) : size_(n) {
  const bool has_inner = n > 2 * margin;
  inner_begin_ = has_inner ? margin : n;
  inner_end_ = has_inner ? n - margin : n;
  if (has_inner) inner_ = row(inner_begin_);
  for (Index i = 0; i < inner_begin_; ++i) outer_.push_back(row(i));
  for (Index i = inner_end_; i < n; ++i) outer_.push_back(row(i));
  const auto widen = [this](const std::vector<Tap>& taps) {
    for (const Tap& tap : taps) {
      reach_before_ = std::max(reach_before_, -tap.offset);
      reach_after_ = std::max(reach_after_, tap.offset);
    }
  };
  widen(inner_);
  for (const std::vector<Tap>& taps : outer_) widen(taps);
}

std::span<const Tap> Band::row(Index i) const {
  if (i < inner_begin_) return outer_[static_cast<std::size_t>(i)];
  if (i < inner_end_) return inner_;
  return outer_[static_cast<std::size_t>(i - inner_end_ + inner_begin_)];
}

Band Band::transposed() const {
  const Index reach = std::max(reach_before_, reach_after_);
  const Index margin = size_ > 0 && inner_begin_ < size_ ? inner_begin_ + reach : size_;
  return Band(size_, margin, [&](Index column) {
    std::vector<Tap> taps;
    for (Index i = std::max<Index>(0, column - reach); i <= std::min(size_ - 1, column + reach); ++i)
      for (const Tap& tap : row(i))
        if (i + tap.offset == column) taps.push_back({i - column, tap.coefficient});
    return taps;
  });
}

namespace {

void check_sampling(double sampling) {
  if (!std::isfinite(sampling) || sampling == 0)
    fail(ErrorCode::invalid_argument,
         fmt::format("the sampling of a derivative is {}; it must be finite and not 0", sampling));
}

}  // namespace

Band first_derivative_band(Index n, const FirstDerivative& options) {
  check_sampling(options.sampling);
  if (options.order != 3 && options.order != 5)
    fail(ErrorCode::invalid_argument,
         fmt::format("the centered first derivative has 3 or 5 points, not {}", options.order));
  const double d = options.sampling;
  const std::vector<Tap> forward{{0, -1 / d}, {1, 1 / d}}, backward{{-1, -1 / d}, {0, 1 / d}};
  const std::vector<Tap> three{{-1, -0.5 / d}, {1, 0.5 / d}};
  const std::vector<Tap> five{{-2, 1 / (12 * d)}, {-1, -8 / (12 * d)}, {1, 8 / (12 * d)}, {2, -1 / (12 * d)}};
  return Band(n, 2, [&](Index i) -> std::vector<Tap> {
    const bool has_before = i >= 1, has_after = i + 1 < n;
    if (options.kind == Difference::forward) return has_after ? forward : std::vector<Tap>{};
    if (options.kind == Difference::backward) return has_before ? backward : std::vector<Tap>{};
    if (options.order == 5 && i >= 2 && i + 2 < n) return five;
    if (options.order == 5 && !options.edge) return {};
    if (has_before && has_after) return three;
    if (!options.edge) return {};
    return has_after ? forward : has_before ? backward : std::vector<Tap>{};
  });
}

Band second_derivative_band(Index n, const SecondDerivative& options, double weight) {
  check_sampling(options.sampling);
  const double c = weight / (options.sampling * options.sampling);
  const std::vector<Tap> forward{{0, c}, {1, -2 * c}, {2, c}}, backward{{-2, c}, {-1, -2 * c}, {0, c}};
  const std::vector<Tap> centered{{-1, c}, {0, -2 * c}, {1, c}};
  return Band(n, 2, [&](Index i) -> std::vector<Tap> {
    const bool has_two_before = i >= 2, has_two_after = i + 2 < n;
    if (options.kind == Difference::forward) return has_two_after ? forward : std::vector<Tap>{};
    if (options.kind == Difference::backward) return has_two_before ? backward : std::vector<Tap>{};
    if (i >= 1 && i + 1 < n) return centered;
    if (!options.edge) return {};
    return i == 0 && has_two_after ? forward : i + 1 == n && has_two_before ? backward : std::vector<Tap>{};
  });
}

int checked_axis(const Layout& layout, int axis) {
  const int axes = layout.axes();
  if (axis < -axes || axis >= axes)
    fail(ErrorCode::invalid_argument, fmt::format("an array of {} has no axis {}; use {} to {}",
                                                  layout.describe(), axis, -axes, axes - 1));
  return axis < 0 ? axis + axes : axis;
}

}  // namespace shoal::linop
