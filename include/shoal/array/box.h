// SPDX-License-Identifier: Apache-2.0
// Boxes of elements between two arrays in C order: copied, or added.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "shoal/array/layout.h"

namespace shoal::array {

/// A box of `extent` that begins at `begin` of an array of `shape`.
struct Place {
  std::span<const Index> shape;
  std::span<const Index> begin;
};

/// Equally spaced runs of contiguous elements: `repeats` of them, `run` long each. Offsets and strides in
/// elements.
struct Patch {
  Index from = 0, to = 0;
  Index run = 1, repeats = 1;
  Index from_stride = 0, to_stride = 0;
};

/// Calls visit(Patch) until the box is covered, in C order, with runs as long as both shapes allow.
template <class Visit>
void for_each_patch(const Place& from, const Place& to, std::span<const Index> extent, const Visit& visit) {
  const std::size_t axes = extent.size();
  for (const Index e : extent)
    if (e == 0) return;
  std::vector<Index> from_stride(axes, 1), to_stride(axes, 1), index(axes, 0);
  Patch patch;
  for (std::size_t a = axes; a-- > 0;) {
    if (a + 1 < axes) {
      from_stride[a] = from_stride[a + 1] * from.shape[a + 1];
      to_stride[a] = to_stride[a + 1] * to.shape[a + 1];
    }
    patch.from += from.begin[a] * from_stride[a];
    patch.to += to.begin[a] * to_stride[a];
  }
  // `outer` axes are left over when the inner ones have become the run, then one more the repeats.
  std::size_t outer = axes;
  while (outer > 0 && from_stride[outer - 1] == patch.run && to_stride[outer - 1] == patch.run)
    patch.run *= extent[--outer];
  if (outer > 0) {
    --outer;
    patch.repeats = extent[outer];
    patch.from_stride = from_stride[outer];
    patch.to_stride = to_stride[outer];
  }
  for (;;) {
    visit(static_cast<const Patch&>(patch));
    std::size_t a = outer;
    for (; a > 0; --a) {
      patch.from += from_stride[a - 1];
      patch.to += to_stride[a - 1];
      if (++index[a - 1] < extent[a - 1]) break;
      patch.from -= extent[a - 1] * from_stride[a - 1];
      patch.to -= extent[a - 1] * to_stride[a - 1];
      index[a - 1] = 0;
    }
    if (a == 0) return;
  }
}

/// Offset of a box whose elements lie in one piece of memory; none otherwise.
inline std::optional<Index> contiguous_offset(const Place& place, std::span<const Index> extent) {
  Index offset = 0;
  bool whole_before = false;  // whether an axis further out has more than one index in the box
  for (std::size_t a = 0; a < extent.size(); ++a) {
    if (whole_before && extent[a] != place.shape[a]) return std::nullopt;
    whole_before = whole_before || extent[a] != 1;
    offset = offset * place.shape[a] + place.begin[a];
  }
  return offset;
}

template <class T>
void copy_box(const T* from, const Place& from_place, T* to, const Place& to_place,
              std::span<const Index> extent) {
  for_each_patch(from_place, to_place, extent, [&](const Patch& patch) {
    const T* source = from + patch.from;
    T* target = to + patch.to;
    const bool short_runs = patch.run < 8;  // where a call of memcpy costs more than it moves
    for (Index r = 0; r < patch.repeats; ++r, source += patch.from_stride, target += patch.to_stride) {
      if (short_runs)
        for (Index i = 0; i < patch.run; ++i) target[i] = source[i];
      else
        std::memcpy(static_cast<void*>(target), source, static_cast<std::size_t>(patch.run) * sizeof(T));
    }
  });
}

/// Sets the box to zero.
template <class T>
void clear_box(T* to, const Place& place, std::span<const Index> extent) {
  for_each_patch(place, place, extent, [&](const Patch& patch) {
    T* target = to + patch.to;
    for (Index r = 0; r < patch.repeats; ++r, target += patch.to_stride) std::fill_n(target, patch.run, T(0));
  });
}

template <class T>
void add_box(const T* from, const Place& from_place, T* to, const Place& to_place,
             std::span<const Index> extent) {
  for_each_patch(from_place, to_place, extent, [&](const Patch& patch) {
    const T* source = from + patch.from;
    T* target = to + patch.to;
    for (Index r = 0; r < patch.repeats; ++r, source += patch.from_stride, target += patch.to_stride)
      for (Index i = 0; i < patch.run; ++i) target[i] += source[i];
  });
}

}  // namespace shoal::array
