// SPDX-License-Identifier: Apache-2.0
// Writing large outputs past the caches: their memory is not read before it is written, and does not push out
// of the caches what is read next. Only whole cache lines can go that way; a line that is written in two
// parts costs more than an ordinary one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shoal/array/layout.h"

namespace shoal::array {

/// Outputs from this size on are worth it.
inline constexpr Index streaming_bytes = Index{4} << 20;

/// Whether stream_lines() can write there.
inline bool can_stream(const void* to) { return reinterpret_cast<std::uintptr_t>(to) % 16 == 0; }
/// Copies a multiple of 64 bytes past the caches; fastest where `to` is a multiple of 64 too.
void stream_lines(void* to, const void* from, Index bytes);

/// Collects what is written to ascending addresses and stores it by whole cache lines. What is collected is
/// stored by flush(). R is float or double; a complex element is two.
template <class R>
class StreamWriter {
 public:
  static constexpr Index line = 64 / static_cast<Index>(sizeof(R));
  /// The most that may be reserved at once.
  static constexpr Index most = 8192 / static_cast<Index>(sizeof(R));

  StreamWriter();
  StreamWriter(StreamWriter&&) = default;
  StreamWriter& operator=(StreamWriter&&) = default;
  /// Where to write the `n` elements that belong at `to`.
  R* reserve(R* to, Index n) {
    if (to != base_ + end_ || end_ + n > capacity) make_room(to, n);
    R* place = buffer_ + end_;
    end_ += n;
    return place;
  }
  /// Any number of elements.
  void copy(R* to, const R* from, Index n) {
    if (n >= most) return copy_long(to, from, n);
    std::copy_n(from, n, reserve(to, n));
  }
  void fill_zero(R* to, Index n) {
    for (Index done = 0; done < n; done += most) {
      const Index some = std::min(n - done, most);
      std::fill_n(reserve(to + done, some), some, R(0));
    }
  }
  void flush();

 private:
  static constexpr Index capacity = most + 2 * line;
  void copy_long(R* to, const R* from, Index n);
  void make_room(R* to, Index n);
  void store(Index end);

  std::vector<R> memory_;
  R* buffer_;          // aligned to lines; buffer_[k] belongs at base_[k]
  R* base_ = nullptr;  // aligned to lines
  Index begin_ = 0, end_ = 0;
};

}  // namespace shoal::array
