// SPDX-License-Identifier: Apache-2.0
// Through which layouts a distributed transform goes: as few as possible, and every rank with work.
#pragma once

#include <optional>
#include <vector>

#include "shoal/array/layout.h"

namespace shoal::linop {

using array::Index;
using array::Layout;

/// An axis that is transformed and its extents before and after.
struct FftAxisExtents {
  int axis;
  Index before, after;
};

/// Axes transformed in one layout.
struct FftStage {
  Layout before, after;           // the same parts but for the extents of `axes`, which no one splits
  std::vector<std::size_t> axes;  // places in the list that was given
};

struct FftRoute {
  std::vector<FftStage> stages;  // consecutive ones and both ends are joined by redistributions
  Layout range;
};

/// `axes.back()` is transformed in the first stage if `last_first` (a real transform begins with the axis
/// that it halves). The range is `range`, or, absent, that of the last stage if `stay`, or as the domain is.
FftRoute plan_route(const Layout& domain, const std::vector<FftAxisExtents>& axes, bool last_first,
                    const std::optional<Layout>& range, bool stay);

}  // namespace shoal::linop
