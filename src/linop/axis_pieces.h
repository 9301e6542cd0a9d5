// SPDX-License-Identifier: Apache-2.0
// Rearranging a block along some of its axes: shifts, padding and cutting in one copy.
#pragma once

#include <vector>

#include "shoal/array/box.h"

namespace shoal::linop {

/// A piece of an axis and where it goes.
struct AxisPiece {
  array::Index from, to, length;
};

/// How an axis of `from` elements becomes one of `to`; targets that no piece covers become 0.
struct AxisMap {
  array::Index from = 0, to = 0;
  std::vector<AxisPiece> pieces;

  static AxisMap identity(array::Index from, array::Index to);
  /// Element i goes to (i + by) mod n, and then all beyond `to` is dropped.
  static AxisMap rotation(array::Index n, array::Index by, array::Index to);
  bool is_identity() const;
  AxisMap reversed() const;
};

/// One map for each axis.
class BlockMap {
 public:
  BlockMap() = default;
  explicit BlockMap(std::vector<AxisMap> axes) : axes_(std::move(axes)) {}
  bool is_identity() const;
  BlockMap reversed() const;
  array::Shape from_shape() const;
  array::Shape to_shape() const;

  template <class T>
  void run(const T* from, T* to) const {
    const array::Shape from_extent = from_shape(), to_extent = to_shape();
    if (!covers()) std::fill_n(to, array::size_of_shape(to_extent), T(0));
    std::vector<std::size_t> piece(axes_.size(), 0);
    array::Shape from_begin(axes_.size()), to_begin(axes_.size()), extent(axes_.size());
    for (const AxisMap& map : axes_)
      if (map.pieces.empty()) return;
    for (;;) {
      for (std::size_t a = 0; a < axes_.size(); ++a) {
        const AxisPiece& p = axes_[a].pieces[piece[a]];
        from_begin[a] = p.from;
        to_begin[a] = p.to;
        extent[a] = p.length;
      }
      array::copy_box(from, {from_extent, from_begin}, to, {to_extent, to_begin}, extent);
      std::size_t a = axes_.size();
      for (; a > 0 && ++piece[a - 1] == axes_[a - 1].pieces.size(); --a) piece[a - 1] = 0;
      if (a == 0) return;
    }
  }

 private:
  bool covers() const;
  std::vector<AxisMap> axes_;
};

}  // namespace shoal::linop
