// SPDX-License-Identifier: Apache-2.0
#include "linop/axis_pieces.h"

#include <algorithm>

namespace shoal::linop {

using array::Index;
using array::Shape;

AxisMap AxisMap::identity(Index from, Index to) { return rotation(from, 0, to); }

AxisMap AxisMap::rotation(Index n, Index by, Index to) {
  AxisMap map{n, to, {}};
  for (const AxisPiece& piece : {AxisPiece{0, by, n - by}, AxisPiece{n - by, 0, by}}) {
    const Index length = std::min(piece.length, to - piece.to);
    if (length > 0) map.pieces.push_back({piece.from, piece.to, length});
  }
  return map;
}

bool AxisMap::is_identity() const {
  return from == to && (from == 0 || (pieces.size() == 1 && pieces[0].length == from));
}

AxisMap AxisMap::reversed() const {
  AxisMap map{to, from, pieces};
  for (AxisPiece& piece : map.pieces) std::swap(piece.from, piece.to);
  return map;
}

bool BlockMap::is_identity() const {
  return std::all_of(axes_.begin(), axes_.end(), [](const AxisMap& map) { return map.is_identity(); });
}

BlockMap BlockMap::reversed() const {
  BlockMap map = *this;
  for (AxisMap& axis : map.axes_) axis = axis.reversed();
  return map;
}

Shape BlockMap::from_shape() const {
  Shape shape;
  for (const AxisMap& map : axes_) shape.push_back(map.from);
  return shape;
}

Shape BlockMap::to_shape() const {
  Shape shape;
  for (const AxisMap& map : axes_) shape.push_back(map.to);
  return shape;
}

bool BlockMap::covers() const {
  return std::all_of(axes_.begin(), axes_.end(), [](const AxisMap& map) {
    Index covered = 0;
    for (const AxisPiece& piece : map.pieces) covered += piece.length;
    return covered == map.to;
  });
}

}  // namespace shoal::linop
