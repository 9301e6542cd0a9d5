// SPDX-License-Identifier: Apache-2.0
// The arithmetic of who owns what.
#include "shoal/array/layout.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shoal/base/error.h"

namespace shoal::array {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

int normalised_axis(int axis, std::size_t axes) {
  const int count = static_cast<int>(axes);
  if (axis < -count || axis >= count)
    fail(ErrorCode::invalid_argument, fmt::format("axis {} of an array with {} axes", axis, count));
  return axis < 0 ? axis + count : axis;
}

// First indices of parts with these extents, and their sum at the end.
std::vector<Index> offsets_of(std::span<const Index> extents) {
  std::vector<Index> offsets(extents.size() + 1, 0);
  std::partial_sum(extents.begin(), extents.end(), offsets.begin() + 1);
  return offsets;
}

}  // namespace

Index size_of_shape(std::span<const Index> shape) {
  for (const Index extent : shape)
    if (extent < 0)
      fail(ErrorCode::invalid_argument, fmt::format("shape {} has a negative extent", to_string(shape)));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  Index size = 1;
  for (const Index extent : shape)
    if (__builtin_mul_overflow(size, extent, &size))
      fail(ErrorCode::invalid_argument, fmt::format("shape {} has 2^63 elements or more", to_string(shape)));
  return size;
}

std::string to_string(std::span<const Index> shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "×"));
}

Index Block::size() const { return size_of_shape(extent); }

std::vector<Index> balanced_extents(Index n, int parts) {
  if (n < 0 || parts < 1)
    fail(ErrorCode::invalid_argument, fmt::format("{} elements cannot be split over {} parts", n, parts));
  std::vector<Index> extents(at(parts), n / parts);
  for (Index i = 0; i < n % parts; ++i) ++extents[at(i)];
  return extents;
}

struct Layout::Data {
  Shape shape;
  int ranks = 1;
  bool replicated = false;
  std::optional<int> split_axis;
  std::vector<int> grid;
  std::vector<std::vector<Index>> extents;  // [axis][part]
  std::vector<std::vector<Index>> offsets;  // [axis][part], and the end
  std::vector<Layout> members;
  Index size = 0;

  // Place of `rank` in the grid along `axis`; the last axis is the fastest.
  int coordinate(Rank rank, std::size_t axis) const {
    for (std::size_t a = grid.size() - 1; a > axis; --a) rank /= grid[a];
    return rank % grid[axis];
  }
};

Layout Layout::from_parts(Shape shape, std::vector<std::vector<Index>> extents,
                          std::optional<int> split_axis) {
  auto data = std::make_shared<Data>();
  data->size = size_of_shape(shape);
  data->split_axis = split_axis;
  Index ranks = 1;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis].empty())
      fail(ErrorCode::invalid_argument, fmt::format("axis {} has no parts; at least 1 is needed", axis));
    for (const Index extent : extents[axis])
      if (extent < 0)
        fail(ErrorCode::invalid_argument, fmt::format("axis {} has a part of extent {}", axis, extent));
    Index left = shape[axis];
    for (const Index extent : extents[axis]) {
      if (extent > left)
        fail(ErrorCode::invalid_argument,
             fmt::format("the parts {} of axis {} sum to more than its extent of {}", extents[axis], axis,
                         shape[axis]));
      left -= extent;
    }
    if (left != 0)
      fail(ErrorCode::invalid_argument, fmt::format("the parts {} of axis {} sum to {}, but its extent is {}",
                                                    extents[axis], axis, shape[axis] - left, shape[axis]));
    data->offsets.push_back(offsets_of(extents[axis]));
    data->grid.push_back(static_cast<int>(extents[axis].size()));
    ranks *= static_cast<Index>(extents[axis].size());
    if (ranks > std::numeric_limits<int>::max())
      fail(ErrorCode::invalid_argument, fmt::format("a grid of more than {} parts", ranks));
  }
  data->ranks = static_cast<int>(ranks);
  data->shape = std::move(shape);
  data->extents = std::move(extents);
  return Layout(std::move(data));
}

Layout Layout::split(Shape shape, int ranks, int axis) {
  axis = normalised_axis(axis, shape.size());
  (void)size_of_shape(shape);
  std::vector<Index> extents = balanced_extents(shape[at(axis)], ranks);
  return split_unevenly(std::move(shape), std::move(extents), axis);
}

Layout Layout::split_unevenly(Shape shape, std::vector<Index> extents, int axis) {
  axis = normalised_axis(axis, shape.size());
  std::vector<std::vector<Index>> parts;
  for (const Index extent : shape) parts.push_back({extent});
  parts[at(axis)] = std::move(extents);
  return from_parts(std::move(shape), std::move(parts), axis);
}

Layout Layout::replicated(Shape shape, int ranks) {
  if (ranks < 1) fail(ErrorCode::invalid_argument, fmt::format("a layout over {} ranks", ranks));
  auto data = std::make_shared<Data>();
  data->size = size_of_shape(shape);
  data->ranks = ranks;
  data->replicated = true;
  data->grid.assign(shape.size(), 1);
  for (const Index extent : shape) {
    data->extents.push_back({extent});
    data->offsets.push_back({0, extent});
  }
  data->shape = std::move(shape);
  return Layout(std::move(data));
}

Layout Layout::blocks(Shape shape, std::vector<int> grid) {
  if (grid.size() != shape.size())
    fail(ErrorCode::invalid_argument,
         fmt::format("a grid of {} axes for an array {}", grid.size(), to_string(shape)));
  (void)size_of_shape(shape);
  std::vector<std::vector<Index>> parts;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    parts.push_back(balanced_extents(shape[axis], grid[axis]));
  return blocks_unevenly(std::move(shape), std::move(parts));
}

Layout Layout::blocks_unevenly(Shape shape, std::vector<std::vector<Index>> extents) {
  if (extents.size() != shape.size())
    fail(ErrorCode::invalid_argument,
         fmt::format("parts of {} axes for an array {}", extents.size(), to_string(shape)));
  int cut = 0;
  std::optional<int> split_axis;
  for (std::size_t axis = extents.size(); axis-- > 0;)
    if (extents[axis].size() > 1) {
      ++cut;
      split_axis = static_cast<int>(axis);
    }
  if (cut == 0 && !extents.empty()) split_axis = 0;
  if (cut > 1) split_axis.reset();
  return from_parts(std::move(shape), std::move(extents), split_axis);
}

Layout Layout::stack(std::vector<Layout> members) {
  if (members.empty()) fail(ErrorCode::invalid_argument, "a stack without members");
  auto data = std::make_shared<Data>();
  data->ranks = members.front().ranks();
  for (const Layout& member : members) {
    if (member.ranks() != data->ranks)
      fail(ErrorCode::invalid_argument, fmt::format("stack: {} is over another number of ranks than {}",
                                                    member.describe(), members.front().describe()));
    if (__builtin_add_overflow(data->size, member.size(), &data->size))
      fail(ErrorCode::invalid_argument, "a stack has 2^63 elements or more");
  }
  data->members = std::move(members);
  return Layout(std::move(data));
}

const std::shared_ptr<const Layout::Data>& Layout::nothing() noexcept {
  static const std::shared_ptr<const Data> data = [] {
    auto none = std::make_shared<Data>();
    none->ranks = 0;
    return none;
  }();
  return data;
}

int Layout::ranks() const { return data_->ranks; }
Index Layout::size() const { return data_->size; }
bool Layout::is_stack() const { return !data_->members.empty(); }
std::span<const Layout> Layout::members() const { return data_->members; }

const Layout& Layout::member(int i) const {
  if (i < 0 || at(i) >= data_->members.size())
    fail(ErrorCode::invalid_argument, fmt::format("member {} of {}", i, describe()));
  return data_->members[at(i)];
}

Index Layout::local_size(Rank rank) const {
  if (rank < 0 || rank >= data_->ranks)
    fail(ErrorCode::invalid_argument, fmt::format("rank {} of {}", rank, describe()));
  if (data_->size == 0) return 0;  // the other extents may have any product
  Index size = is_stack() ? 0 : 1;
  for (const Layout& member : data_->members) size += member.local_size(rank);
  for (std::size_t axis = 0; axis < data_->grid.size(); ++axis)
    size *= data_->extents[axis][at(data_->coordinate(rank, axis))];
  return size;
}

Index Layout::member_offset(int i, Rank rank) const {
  (void)member(i);
  Index offset = 0;
  for (int m = 0; m < i; ++m) offset += member(m).local_size(rank);
  return offset;
}

const Layout::Data& Layout::single(const char* what) const {
  if (is_stack())
    fail(ErrorCode::invalid_argument, fmt::format("{} of a {}: ask its members", what, describe()));
  return *data_;
}

const Shape& Layout::shape() const { return single("shape").shape; }
int Layout::axes() const { return static_cast<int>(single("axes").shape.size()); }
bool Layout::is_replicated() const { return single("is_replicated").replicated; }
const std::vector<int>& Layout::grid() const { return single("grid").grid; }
std::optional<int> Layout::split_axis() const { return single("split_axis").split_axis; }

std::span<const Index> Layout::extents(int axis) const {
  const Data& data = single("extents");
  return data.extents[at(normalised_axis(axis, data.shape.size()))];
}

std::span<const Index> Layout::offsets(int axis) const {
  const Data& data = single("offsets");
  return data.offsets[at(normalised_axis(axis, data.shape.size()))];
}

Block Layout::block(Rank rank) const {
  const std::vector<int> place = coordinates(rank);
  Block block;
  for (std::size_t axis = 0; axis < place.size(); ++axis) {
    block.begin.push_back(data_->offsets[axis][at(place[axis])]);
    block.extent.push_back(data_->extents[axis][at(place[axis])]);
  }
  return block;
}

std::vector<int> Layout::coordinates(Rank rank) const {
  const Data& data = single("coordinates");
  if (rank < 0 || rank >= data.ranks)
    fail(ErrorCode::invalid_argument, fmt::format("rank {} of {}", rank, describe()));
  std::vector<int> place;
  for (std::size_t axis = 0; axis < data.grid.size(); ++axis) place.push_back(data.coordinate(rank, axis));
  return place;
}

Rank Layout::rank_at(std::span<const int> coordinates) const {
  const Data& data = single("rank_at");
  Rank rank = 0;
  bool inside = coordinates.size() == data.grid.size();
  for (std::size_t axis = 0; inside && axis < data.grid.size(); ++axis) {
    inside = coordinates[axis] >= 0 && coordinates[axis] < data.grid[axis];
    rank = rank * data.grid[axis] + coordinates[axis];
  }
  if (!inside)
    fail(ErrorCode::invalid_argument, fmt::format("place {} is not in the grid {}", coordinates, data.grid));
  return rank;
}

bool Layout::same(const Layout& a, const Layout& b) {
  const Data &x = *a.data_, &y = *b.data_;
  return x.ranks == y.ranks && x.replicated == y.replicated && x.shape == y.shape && x.offsets == y.offsets &&
         x.members == y.members;
}

std::string Layout::describe() const {
  if (is_stack()) {
    std::vector<std::string> names;
    for (const Layout& member : data_->members) names.push_back(member.describe());
    return fmt::format("stack of ({})", fmt::join(names, "; "));
  }
  const Data& data = *data_;
  if (data.ranks == 0) return "nothing (it has been moved from)";
  const std::string shape = to_string(data.shape);
  if (data.replicated) return fmt::format("{} replicated on {} ranks", shape, data.ranks);
  std::string text;
  if (data.split_axis)
    text = fmt::format("{} split along axis {} over {} rank{}", shape, *data.split_axis, data.ranks,
                       data.ranks == 1 ? "" : "s");
  else
    text = fmt::format("{} in blocks on a grid {}", shape, fmt::join(data.grid, "×"));
  // Without the parts, two uneven layouts would read alike.
  for (std::size_t axis = 0; axis < data.grid.size(); ++axis)
    if (data.extents[axis] != balanced_extents(data.shape[axis], data.grid[axis]))
      text += fmt::format(" (parts of axis {}: {})", axis, fmt::join(data.extents[axis], ", "));
  return text;
}

void fail_unequal(const Layout& a, const Layout& b, const char* what) {
  fail(ErrorCode::invalid_argument,
       fmt::format("{}: the layouts differ: {} and {}", what, a.describe(), b.describe()));
}

}  // namespace shoal::array
