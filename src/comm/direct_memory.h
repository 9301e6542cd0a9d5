// SPDX-License-Identifier: Apache-2.0
// Puts and signals by loads and stores, for peers whose memory this process can address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace shoal::comm {

inline void store_put(std::byte* peer_memory, std::size_t offset, const void* source, std::size_t bytes) {
  if (bytes > 0) std::memcpy(peer_memory + offset, source, bytes);
}

/// Publishes all earlier stores together with `value`.
inline void store_signal(std::byte* peer_memory, std::size_t signal_offset, std::uint64_t value) {
  auto* word = reinterpret_cast<std::uint64_t*>(peer_memory + signal_offset);
  std::atomic_ref<std::uint64_t>(*word).store(value, std::memory_order_release);
}

}  // namespace shoal::comm
