// SPDX-License-Identifier: Apache-2.0
// Copies to memory that is not read again soon: past the caches, where the processor can.
#pragma once

#include <cstddef>
#include <cstring>

#include "shoal/array/simd.h"
#include "shoal/array/streaming.h"

namespace shoal::linop {

// Outputs from this size on would push out of the caches what is read next.
inline constexpr std::size_t streaming_bytes = std::size_t{4} << 20;

inline void copy_streaming(const void* from, void* to, std::size_t bytes) {
  const std::size_t lines = array::can_stream(to) ? bytes / 64 * 64 : 0;
  array::stream_lines(to, from, static_cast<std::ptrdiff_t>(lines));
  std::memcpy(static_cast<std::byte*>(to) + lines, static_cast<const std::byte*>(from) + lines,
              bytes - lines);
}

}  // namespace shoal::linop
