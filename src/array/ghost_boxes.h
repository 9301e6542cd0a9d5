// SPDX-License-Identifier: Apache-2.0
// Which ghost cells a rank has, and where they come from, worked out from the layout.
#pragma once

#include <vector>

#include "shoal/array/ghost_cells.h"
#include "shoal/array/layout.h"

namespace shoal::array {

/// Widths of the ghost cells below and above the own elements on one axis.
struct Width {
  Index before = 0, after = 0;
};

/// A box of cells of one rank that come from one place.
struct GhostBox {
  Rank owner = 0;    // whose elements they are; -1: zeros
  bool own = false;  // not ghosts, but the rank's own elements
  int target = 0;    // which of the receiver's arrays
  Shape source;      // begin in the owner's block
  Shape place;       // begin in the receiver's array
  Shape extent;
};

/// Widths that a rank really has: Boundary::none ends them with the global array.
Width actual_width(const Layout& layout, Rank rank, int axis, Width wanted, Boundary boundary);

/// All cells of the extended block (ghosts on all axes) of `rank`, its own included.
std::vector<GhostBox> extended_boxes(const Layout& layout, Rank rank, const std::vector<Width>& widths,
                                     Boundary boundary);
/// The ghost planes of `rank` along one axis: target 0 holds those before, target 1 those after.
std::vector<GhostBox> plane_boxes(const Layout& layout, Rank rank, int axis, Width width, Boundary boundary);

}  // namespace shoal::array
