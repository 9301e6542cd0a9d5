// SPDX-License-Identifier: Apache-2.0
// Copies to memory that is not read again soon: past the caches, where the processor can.
#pragma once

#include <cstddef>

#include "shoal/array/simd.h"
#include "shoal/array/streaming.h"

namespace shoal::linop {

// Outputs from this size on would push out of the caches what is read next.
inline constexpr std::size_t streaming_bytes = std::size_t{4} << 20;

inline void copy_streaming(const void* from, void* to, std::size_t bytes) {
  namespace simd = array::simd;
  constexpr std::size_t line = sizeof(simd::Doubles);
  if (reinterpret_cast<std::uintptr_t>(to) % line == 0 && bytes % line == 0) {
    array::stream_lines(to, from, static_cast<std::ptrdiff_t>(bytes));
    return;
  }
  if (!simd::can_stream(to)) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  std::size_t i = 0;
  for (; i + line <= bytes; i += line) {
    simd::Doubles v;
    std::memcpy(&v, source + i, line);
    simd::store_streaming(target + i, v);
  }
  std::memcpy(target + i, source + i, bytes - i);
}

}  // namespace shoal::linop
