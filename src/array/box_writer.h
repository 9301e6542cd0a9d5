// SPDX-License-Identifier: Apache-2.0
// Boxes of elements written to large arrays, past the caches. The counterparts of box.h.
#pragma once

#include "shoal/array/box.h"
#include "shoal/array/distributed_array.h"
#include "shoal/array/streaming.h"

namespace shoal::array {

template <class T>
class BoxWriter {
 public:
  /// Whether it is worth while.
  static bool suits(std::span<const Index> extent) {
    return size_of_shape(extent) * static_cast<Index>(sizeof(T)) >= streaming_bytes;
  }

  /// Copies the box. Small gaps in the target between its runs may become zeros, so that all lines are whole:
  /// what belongs there must be written later.
  void copy(const T* from, const Place& from_place, T* to, const Place& to_place,
            std::span<const Index> extent) {
    for_each_patch(from_place, to_place, extent, [&](const Patch& patch) {
      const R* source = reals(from + patch.from);
      R* target = reals(to + patch.to);
      const Index run = patch.run * each, gap = patch.to_stride * each - run;
      for (Index r = 0; r < patch.repeats; ++r) {
        writer_.copy(target, source, run);
        if (r + 1 < patch.repeats && gap <= small_gap) writer_.fill_zero(target + run, gap);
        source += patch.from_stride * each;
        target += patch.to_stride * each;
      }
    });
    writer_.flush();
  }

  /// Copies a box into a whole array of `to_place.shape`, with zeros around it.
  void surround(const T* from, const Place& from_place, T* to, const Place& to_place,
                std::span<const Index> extent) {
    R* next = reals(to);
    R* const end = next + size_of_shape(to_place.shape) * each;
    for_each_patch(from_place, to_place, extent, [&](const Patch& patch) {
      const R* source = reals(from + patch.from);
      R* target = reals(to + patch.to);
      for (Index r = 0; r < patch.repeats; ++r) {
        writer_.fill_zero(next, target - next);
        writer_.copy(target, source, patch.run * each);
        next = target + patch.run * each;
        source += patch.from_stride * each;
        target += patch.to_stride * each;
      }
    });
    writer_.fill_zero(next, end - next);
    writer_.flush();
  }

 private:
  using R = Real<T>;
  static constexpr Index each = static_cast<Index>(sizeof(T) / sizeof(R));
  static constexpr Index small_gap = 4 * StreamWriter<R>::line;
  static const R* reals(const T* elements) { return reinterpret_cast<const R*>(elements); }
  static R* reals(T* elements) { return reinterpret_cast<R*>(elements); }

  StreamWriter<R> writer_;
};

}  // namespace shoal::array
