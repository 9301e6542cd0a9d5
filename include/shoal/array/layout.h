// SPDX-License-Identifier: Apache-2.0
// Who owns which part of a global shape. A Layout is a value that every rank holds whole, so no operation
// needs to ask another rank what it owns. It knows the number of ranks, not the communicator.
//
// Goals: slabs, blocks and replicas in one type; uneven and empty parts as ordinary ones; arithmetic that can
// be tested for sizes that nobody can allocate. Non-goal: cyclic distributions (nothing here needs them).
// Rejected: a separate type for stacked arrays. A stack is a layout with members, whose local parts lie one
// after the other in one piece of memory, so the algebra and the solvers know one kind of array.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shoal::array {

/// An index or a length, global or local, in elements.
using Index = std::int64_t;
/// Extents of each axis, slowest first (C order). Empty for a scalar.
using Shape = std::vector<Index>;
using Rank = int;

/// Number of elements; throws invalid_argument where it exceeds 2^63 - 1 or an extent is negative.
Index size_of_shape(std::span<const Index> shape);
/// "300×200×200"
std::string to_string(std::span<const Index> shape);

/// The part of a global shape that a rank owns: the half-open box from `begin`, `extent` long, on each axis.
struct Block {
  Shape begin;
  Shape extent;
  Index size() const;
  bool operator==(const Block&) const = default;
};

/// n split over `parts`: n / parts each, and one more for the first n % parts.
std::vector<Index> balanced_extents(Index n, int parts);

class Layout {
 public:
  /// Slabs along `axis` (negative counts from the end), balanced.
  static Layout split(Shape shape, int ranks, int axis = 0);
  /// Slabs with these extents along `axis`; their sum must be the axis' extent.
  static Layout split_unevenly(Shape shape, std::vector<Index> extents, int axis = 0);
  /// Everything on every rank.
  static Layout replicated(Shape shape, int ranks);
  /// Blocks: `grid` says into how many parts each axis is cut; the product is the number of ranks, which are
  /// numbered through the grid with the last axis fastest.
  static Layout blocks(Shape shape, std::vector<int> grid);
  /// Blocks with the extents of the parts of each axis.
  static Layout blocks_unevenly(Shape shape, std::vector<std::vector<Index>> extents);
  /// Several arrays as one. Members may be stacks. All over the same number of ranks.
  static Layout stack(std::vector<Layout> members);

  Layout(const Layout&) = default;
  Layout& operator=(const Layout&) = default;
  /// What is moved from is a layout of nothing over no ranks, whose description says so.
  Layout(Layout&& other) noexcept : data_(std::exchange(other.data_, nothing())) {}
  Layout& operator=(Layout&& other) noexcept {
    if (this != &other) data_ = std::exchange(other.data_, nothing());
    return *this;
  }
  ~Layout() = default;

  int ranks() const;
  /// Number of elements of the global array; of a stack, the sum of its members'.
  Index size() const;
  /// Number of elements that `rank` holds.
  Index local_size(Rank rank) const;

  bool is_stack() const;
  std::span<const Layout> members() const;  // none unless a stack
  const Layout& member(int i) const;
  /// Where member `i` begins in the local memory of `rank`, in elements.
  Index member_offset(int i, Rank rank) const;

  // The following are for layouts that are not stacks; others throw invalid_argument.
  const Shape& shape() const;
  int axes() const;
  bool is_replicated() const;
  /// Parts of each axis; all ones when replicated.
  const std::vector<int>& grid() const;
  /// Extents of the parts of `axis`.
  std::span<const Index> extents(int axis) const;
  /// First indices of the parts of `axis`, and its extent at the end.
  std::span<const Index> offsets(int axis) const;
  /// The axis of a slab layout (also on one rank); none for replicas and for blocks over several axes. Blocks
  /// that cut no axis are a slab along axis 0.
  std::optional<int> split_axis() const;
  Block block(Rank rank) const;
  /// Place of `rank` in the grid.
  std::vector<int> coordinates(Rank rank) const;
  Rank rank_at(std::span<const int> coordinates) const;

  /// The same distribution: all parts of all ranks equal. Cheap for copies of one layout. A replicated layout
  /// never equals a split one, also on one rank, so that what works there works on more.
  friend bool operator==(const Layout& a, const Layout& b) { return a.data_ == b.data_ || same(a, b); }
  /// "300×200×200 split along axis 0 over 4 ranks", for messages.
  std::string describe() const;

 private:
  struct Data;
  static const std::shared_ptr<const Data>& nothing() noexcept;
  static bool same(const Layout& a, const Layout& b);
  static Layout from_parts(Shape shape, std::vector<std::vector<Index>> extents,
                           std::optional<int> split_axis);
  const Data& single(const char* what) const;
  explicit Layout(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// Throws invalid_argument that names both layouts and `what`.
[[noreturn]] void fail_unequal(const Layout& a, const Layout& b, const char* what);
/// The same when they differ.
inline void require_equal(const Layout& a, const Layout& b, const char* what) {
  if (!(a == b)) fail_unequal(a, b, what);
}

}  // namespace shoal::array
