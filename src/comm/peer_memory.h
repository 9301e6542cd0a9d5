// SPDX-License-Identifier: Apache-2.0
// Reading what lies in another rank's ordinary memory: by loads where the ranks are threads, and by
// process_vm_readv (Linux) where they are processes and the kernel lets them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shoal/comm/transport.h"

namespace shoal::comm {

class PeerMemory {
 public:
  /// A rank's words in memory that the others can load: written by its owner alone. All zero at first.
  struct Window {
    std::int64_t process;
    std::uint64_t address;    // of a word in ordinary memory of the owner
    std::uint64_t value;      // of that word
    std::uint64_t reading;    // 1 + the rank of the world that the owner is reading from
    std::uint64_t withdrawn;  // not 0: nobody may begin to read from the owner
  };

  /// `windows` by rank of the world: of the ranks of this host, null of the others. They outlive this.
  /// `threads`: the ranks are threads of this process.
  PeerMemory(const World& world, std::vector<Window*> windows, bool threads);

  /// Whether what the others say is at their addresses is there. After all have been constructed.
  bool reads_all() const;

  /// Copies from `address` in the process of rank `peer` of the world. What the peer has written there must
  /// have been published to this rank. Throws communication with the peer's name, or aborted where the peer
  /// has withdrawn.
  void read(Rank peer, void* to, std::uint64_t address, std::size_t bytes) const;

  /// Of a rank that fails while others may read from it: on return nobody does, nor will.
  void withdraw() const;

 private:
  Window& own() const { return *windows_[static_cast<std::size_t>(world_.rank)]; }
  void read_thread(Rank peer, void* to, std::uint64_t address, std::size_t bytes) const;
  /// The error's number, or 0.
  int read_process(Rank peer, void* to, std::uint64_t address, std::size_t bytes) const;

  const World& world_;
  const std::vector<Window*> windows_;
  const bool threads_;
  std::uint64_t word_;
};

inline std::uint64_t address_of(const void* data) { return reinterpret_cast<std::uint64_t>(data); }

}  // namespace shoal::comm
