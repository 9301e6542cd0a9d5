// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/halo.h"

#include <algorithm>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "shoal/base/error.h"

namespace shoal::linop {
namespace {

struct Sides {
  std::vector<Index> before, after;  // of each axis
};

Sides sides_of(const Layout& layout, const std::vector<Index>& widths) {
  const auto axes = static_cast<std::size_t>(layout.axes());
  if (widths.size() != 1 && widths.size() != axes && widths.size() != 2 * axes)
    fail(ErrorCode::invalid_argument, fmt::format("a halo of {} widths does not fit {} axes; give 1, {} (one "
                                                  "for each axis) or {} (before and after)",
                                                  widths.size(), axes, axes, 2 * axes));
  Sides sides;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const bool both = widths.size() == 2 * axes;
    sides.before.push_back(widths.size() == 1 ? widths[0] : widths[both ? 2 * axis : axis]);
    sides.after.push_back(widths.size() == 1 ? widths[0] : widths[both ? 2 * axis + 1 : axis]);
  }
  for (const Index width : widths)
    if (width < 0)
      fail(ErrorCode::invalid_argument, fmt::format("a halo cannot be {} wide; use 0 or more", width));
  return sides;
}

// The layout of the extended blocks. Extents along an axis depend on the place along that axis alone, so one
// rank of each place is asked.
template <class T>
Layout extended_layout(const Layout& layout, const array::GhostBlock<T>& ghosts) {
  const auto axes = static_cast<std::size_t>(layout.axes());
  if (layout.is_replicated()) return Layout::replicated(ghosts.extended_shape(0), layout.ranks());
  std::vector<std::vector<Index>> extents(axes);
  Shape shape(axes, 0);
  for (std::size_t axis = 0; axis < axes; ++axis)
    for (int place = 0; place < layout.grid()[axis]; ++place) {
      std::vector<int> coordinates(axes, 0);
      coordinates[axis] = place;
      extents[axis].push_back(ghosts.extended_shape(layout.rank_at(coordinates))[axis]);
      shape[axis] += extents[axis].back();
    }
  return Layout::blocks_unevenly(std::move(shape), std::move(extents));
}

template <class T>
struct Extend {
  using domain_type = T;
  using range_type = T;
  const comm::Communicator& communicator() const { return group; }
  const Layout& domain() const { return plain; }
  const Layout& range() const { return extended; }
  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const {
    ghosts->exchange(x.local(), y.local());
  }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    ghosts->exchange_adjoint(y.local(), x.local());
  }
  comm::Communicator group;
  Layout plain, extended;
  std::shared_ptr<array::GhostBlock<T>> ghosts;
};

template <class T>
struct Crop {
  using domain_type = T;
  using range_type = T;
  const comm::Communicator& communicator() const { return group; }
  const Layout& domain() const { return extended; }
  const Layout& range() const { return plain; }
  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const {
    ghosts->crop(x.local(), y.local());
  }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    ghosts->surround(y.local(), x.local());
  }
  comm::Communicator group;
  Layout plain, extended;
  std::shared_ptr<array::GhostBlock<T>> ghosts;
};

}  // namespace

template <class T>
Halo<T> halo(const comm::Communicator& communicator, const Layout& layout, const std::vector<Index>& widths,
             Boundary boundary) {
  Sides sides = sides_of(layout, widths);
  auto ghosts = std::make_shared<array::GhostBlock<T>>(communicator, layout, std::move(sides.before),
                                                       std::move(sides.after), boundary);
  const Layout extended = extended_layout(layout, *ghosts);
  return {Extend<T>{communicator, layout, extended, ghosts}, Crop<T>{communicator, layout, extended, ghosts}};
}

#define SHOAL_INSTANTIATE(T) \
  template Halo<T> halo(const comm::Communicator&, const Layout&, const std::vector<Index>&, Boundary);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
