// SPDX-License-Identifier: Apache-2.0
// Elements of the neighbours beside a rank's own, for stencils. Any width, over as many neighbours as it
// takes; uneven and empty parts as ordinary ones. All is worked out from the layout at construction; an
// exchange is one neighbour exchange, which may be under way while the inside is computed.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "shoal/array/distributed_array.h"

namespace shoal::array {

/// What lies beyond the ends of the global array: nothing (ghost cells end there), zeros, the other end, or
/// the outermost element again.
enum class Boundary : std::uint8_t { none, zero, periodic, clamp };

/// Ghost planes along one axis of a slab or block layout, in memory of their own: the rank's own elements are
/// not copied. `before` holds the planes below the own ones in ascending order, `after` those above; a plane
/// is [axes before `axis`, width, axes behind] of the rank's block, in C order. With Boundary::none a buffer
/// is shorter where the global array ends.
template <class T>
class GhostPlanes {
 public:
  GhostPlanes(const comm::Communicator& communicator, const Layout& layout, int axis, Index before,
              Index after, Boundary boundary = Boundary::none);
  ~GhostPlanes();
  GhostPlanes(GhostPlanes&&) noexcept;

  /// Collective. Starts sending planes of `x`, which must not change until finish().
  void start(const DistributedArray<T>& x);
  void finish();
  std::span<const T> before() const;
  std::span<const T> after() const;
  Index before_width() const;  // planes that there are on this rank
  Index after_width() const;

  /// The adjoint of the exchange: adds what this rank holds for others' planes (`before`, `after`, laid out
  /// as above) to their owners' elements in `x`. Collective.
  void add_back(std::span<const T> before, std::span<const T> after, DistributedArray<T>& x);

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

/// The rank's block with ghost cells on all sides of all axes, corners included, as one array in C order.
template <class T>
class GhostBlock {
 public:
  /// `before` and `after`: widths for each axis.
  GhostBlock(const comm::Communicator& communicator, const Layout& layout, std::vector<Index> before,
             std::vector<Index> after, Boundary boundary = Boundary::none);
  ~GhostBlock();
  GhostBlock(GhostBlock&&) noexcept;

  /// Extents with ghost cells, and where the own block begins in them, of this rank and of any.
  Shape extended_shape(Rank rank) const;
  Shape own_begin(Rank rank) const;

  /// Collective: extended (product of extended_shape) = own elements and ghost cells.
  void exchange(std::span<const T> own, std::span<T> extended);
  /// The adjoint: own = own part of `extended` and all that others hold as ghosts of it.
  void exchange_adjoint(std::span<const T> extended, std::span<T> own);
  /// The inverse: own = own part of `extended`. Local.
  void crop(std::span<const T> extended, std::span<T> own) const;
  /// The adjoint of the inverse: `extended` = own elements, and zeros around them. Local.
  void surround(std::span<const T> own, std::span<T> extended) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace shoal::array
