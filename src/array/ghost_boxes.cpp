// SPDX-License-Identifier: Apache-2.0
#include "array/ghost_boxes.h"

#include <algorithm>

namespace shoal::array {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Consecutive cells along one axis that come from consecutive elements of one part of it.
struct Segment {
  Index place = 0;   // in the receiver's array
  int part = -1;     // whose elements: number of the part along the axis; -1: zeros
  Index source = 0;  // within that part
  Index count = 0;
};

// The element that stands at global index g, which may lie outside of [0, n); -1: zero.
Index element_at(Index g, Index n, Boundary boundary) {
  if (g >= 0 && g < n) return g;
  if (n == 0) return -1;
  if (boundary == Boundary::periodic) return (g % n + n) % n;
  if (boundary == Boundary::clamp) return std::clamp<Index>(g, 0, n - 1);
  return -1;
}

// Adds the cells that stand for global indices [begin, end) to `segments`, from `place` on.
void append(std::vector<Segment>& segments, const Layout& layout, int axis, Index begin, Index end,
            Index place, Boundary boundary) {
  const std::span<const Index> offsets = layout.offsets(axis);
  const std::size_t first = segments.size();
  for (Index g = begin; g < end; ++g, ++place) {
    Segment next{place, -1, 0, 1};
    if (const Index element = element_at(g, offsets.back(), boundary); element >= 0) {
      next.part =
          static_cast<int>(std::upper_bound(offsets.begin(), offsets.end(), element) - offsets.begin()) - 1;
      next.source = element - offsets[at(next.part)];
    }
    if (segments.size() > first) {
      Segment& last = segments.back();
      if (last.part == next.part && (next.part < 0 || last.source + last.count == next.source)) {
        ++last.count;
        continue;
      }
    }
    segments.push_back(next);
  }
}

Segment own_segment(const Layout& layout, int axis, int part, Index place) {
  return {place, part, 0, layout.extents(axis)[at(part)]};
}

// All boxes that choose one segment on each axis.
std::vector<GhostBox> product(const Layout& layout, Rank rank,
                              const std::vector<std::vector<Segment>>& segments, int target) {
  std::vector<GhostBox> boxes(1);
  boxes.front().target = target;
  std::vector<std::vector<int>> parts(1);
  for (const std::vector<Segment>& choices : segments) {
    std::vector<GhostBox> longer;
    std::vector<std::vector<int>> longer_parts;
    for (std::size_t i = 0; i < boxes.size(); ++i)
      for (const Segment& segment : choices) {
        if (segment.count == 0) continue;
        longer.push_back(boxes[i]);
        longer.back().source.push_back(segment.source);
        longer.back().place.push_back(segment.place);
        longer.back().extent.push_back(segment.count);
        longer_parts.push_back(parts[i]);
        longer_parts.back().push_back(segment.part);
      }
    boxes = std::move(longer);
    parts = std::move(longer_parts);
  }
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const bool zero = std::find(parts[i].begin(), parts[i].end(), -1) != parts[i].end();
    boxes[i].owner = zero ? -1 : layout.is_replicated() ? rank : layout.rank_at(parts[i]);
  }
  return boxes;
}

}  // namespace

Width actual_width(const Layout& layout, Rank rank, int axis, Width wanted, Boundary boundary) {
  if (boundary != Boundary::none) return wanted;
  const std::span<const Index> offsets = layout.offsets(axis);
  const int part = layout.coordinates(rank)[at(axis)];
  return {std::min(wanted.before, offsets[at(part)]),
          std::min(wanted.after, offsets.back() - offsets[at(part + 1)])};
}

std::vector<GhostBox> extended_boxes(const Layout& layout, Rank rank, const std::vector<Width>& widths,
                                     Boundary boundary) {
  const std::vector<int> coordinates = layout.coordinates(rank);
  std::vector<std::vector<Segment>> segments;
  Shape own_place;
  for (int axis = 0; axis < layout.axes(); ++axis) {
    const int part = coordinates[at(axis)];
    const Index begin = layout.offsets(axis)[at(part)], end = layout.offsets(axis)[at(part + 1)];
    const Width width = actual_width(layout, rank, axis, widths[at(axis)], boundary);
    std::vector<Segment> choices;
    append(choices, layout, axis, begin - width.before, begin, 0, boundary);
    choices.push_back(own_segment(layout, axis, part, width.before));
    append(choices, layout, axis, end, end + width.after, width.before + end - begin, boundary);
    segments.push_back(std::move(choices));
    own_place.push_back(width.before);
  }
  std::vector<GhostBox> boxes = product(layout, rank, segments, 0);
  for (GhostBox& box : boxes) box.own = box.place == own_place && box.owner == rank;
  return boxes;
}

std::vector<GhostBox> plane_boxes(const Layout& layout, Rank rank, int axis, Width width, Boundary boundary) {
  const std::vector<int> coordinates = layout.coordinates(rank);
  const int part = coordinates[at(axis)];
  const Index begin = layout.offsets(axis)[at(part)], end = layout.offsets(axis)[at(part + 1)];
  width = actual_width(layout, rank, axis, width, boundary);
  std::vector<GhostBox> boxes;
  for (const int target : {0, 1}) {
    std::vector<std::vector<Segment>> segments;
    for (int a = 0; a < layout.axes(); ++a) {
      std::vector<Segment> choices;
      if (a != axis)
        choices.push_back(own_segment(layout, a, coordinates[at(a)], 0));
      else if (target == 0)
        append(choices, layout, axis, begin - width.before, begin, 0, boundary);
      else
        append(choices, layout, axis, end, end + width.after, 0, boundary);
      segments.push_back(std::move(choices));
    }
    for (GhostBox& box : product(layout, rank, segments, target)) boxes.push_back(std::move(box));
  }
  return boxes;
}

}  // namespace shoal::array
