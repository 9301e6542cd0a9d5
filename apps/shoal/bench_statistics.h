// SPDX-License-Identifier: Apache-2.0
// What is said of repeated measurements: the middle, and how far the middle half of them lies apart.
#pragma once

#include <span>
#include <vector>

namespace shoal::app {

struct Quartiles {
  double low = 0;  // a quarter of the values lie below
  double median = 0;
  double high = 0;  // a quarter lie above

  /// Distance of the quartiles as a fraction of the median.
  double spread() const { return median > 0 ? (high - low) / median : 0; }
};

/// With linear interpolation between the two nearest values. Throws invalid_argument when there are none.
Quartiles quartiles(std::vector<double> values);

/// Of a[i] / b[i]: what was measured one after the other is compared, so that a machine that slows down
/// between two pairs changes nothing. Throws invalid_argument for unequal lengths.
Quartiles paired_ratio(std::span<const double> a, std::span<const double> b);

}  // namespace shoal::app
