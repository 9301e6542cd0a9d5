// SPDX-License-Identifier: Apache-2.0
// Where each rank's part lies in a buffer of parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace shoal::comm {

struct Parts {
  Parts(std::span<const std::int64_t> counts, std::size_t element_bytes) {
    for (const std::int64_t count : counts) {
      begin.push_back(total);
      bytes.push_back(static_cast<std::size_t>(count) * element_bytes);
      total += bytes.back();
    }
  }
  std::vector<std::size_t> begin, bytes;
  std::size_t total = 0;
};

/// `count` elements in n slices whose lengths differ by at most one.
inline std::vector<std::int64_t> even_counts(std::int64_t count, int n) {
  std::vector<std::int64_t> counts;
  for (int r = 0; r < n; ++r) counts.push_back(count / n + (r < count % n ? 1 : 0));
  return counts;
}

inline std::byte* at(void* base, std::size_t offset) { return static_cast<std::byte*>(base) + offset; }
inline const std::byte* at(const void* base, std::size_t offset) {
  return static_cast<const std::byte*>(base) + offset;
}
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

}  // namespace shoal::comm
