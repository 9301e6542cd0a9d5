// SPDX-License-Identifier: Apache-2.0
#include "bench_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "shoal/base/error.h"

namespace shoal::app {

Quartiles quartiles(std::vector<double> values) {
  if (values.empty()) fail(ErrorCode::invalid_argument, "quartiles of no values");
  std::ranges::sort(values);
  const auto at = [&](double fraction) {
    const double position = fraction * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], position - static_cast<double>(below));
  };
  return {at(0.25), at(0.5), at(0.75)};
}

Quartiles paired_ratio(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) fail(ErrorCode::invalid_argument, "ratios of series that are not equally long");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return quartiles(std::move(ratios));
}

}  // namespace shoal::app
