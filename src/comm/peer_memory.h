// SPDX-License-Identifier: Apache-2.0
// Reading and writing what lies in another rank's ordinary memory: by loads and stores where the ranks are
// threads, and by process_vm_readv and process_vm_writev (Linux) where they are processes and the kernel lets
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "comm/tuning.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

class PeerMemory {
 public:
  /// A rank's words in memory that the others can load: written by its owner alone. All zero at first. A line
  /// that changes with every copy, and one that does not.
  struct Window {
    alignas(tuning::cache_line) std::uint64_t reading;  // 1 + the rank of the world that the owner reads from
    std::uint64_t writing;                              // the same of a rank that it writes to
    alignas(tuning::cache_line) std::int64_t process;
    std::uint64_t address;    // of a word in ordinary memory of the owner
    std::uint64_t value;      // of that word
    std::uint64_t withdrawn;  // not 0: nobody may begin to read from the owner or to write to it
  };

  /// `windows` by rank of the world: of the ranks of this host, null of the others. They outlive this.
  /// `threads`: the ranks are threads of this process.
  PeerMemory(const World& world, std::vector<Window*> windows, bool threads);

  /// Whether what the others say is at their addresses is there, and can be written. After all have been
  /// constructed.
  bool reaches_all() const;

  /// Copies from `address` in the process of rank `peer` of the world. What the peer has written there must
  /// have been published to this rank. Throws communication with the peer's name, or aborted where the peer
  /// has withdrawn.
  void read(Rank peer, void* to, std::uint64_t address, std::size_t bytes) const;

  /// Copies to `address` in the process of rank `peer`, who keeps that memory until it hears that this is
  /// done, or withdraws. Throws as read() does.
  void write(Rank peer, std::uint64_t address, const void* from, std::size_t bytes) const;

  /// Throws communication with the peer's name when it has ended.
  void probe(Rank peer) const;

  /// Returns when `done`, or when `peer` has ended. Of a rank that gives up memory which `peer` is writing
  /// to: a peer that does nothing for a second has been stopped half-way, and is killed.
  void outlast(Rank peer, const std::function<bool()>& done) const;

  /// Of a rank that fails while others may read from it or write to it: on return nobody does, nor will.
  /// (Between processes reading is harmless, and goes on.)
  void withdraw() const;

 private:
  Window& own() const { return *windows_[static_cast<std::size_t>(world_.rank)]; }
  template <class Copy>
  void guarded(std::uint64_t& word, Rank peer, Copy&& copy) const;
  [[noreturn]] void refuse(int error, std::string_view what, std::size_t bytes, Rank peer) const;
  /// One of process_vm_readv and process_vm_writev on all of it; the error's number, or 0.
  template <class Call>
  int copy_process(Call call, Rank peer, void* here, std::uint64_t address, std::size_t bytes) const;
  bool is_there(Rank peer) const;

  const World& world_;
  const std::vector<Window*> windows_;
  const bool threads_;
  std::uint64_t word_;
};

inline std::uint64_t address_of(const void* data) { return reinterpret_cast<std::uint64_t>(data); }

}  // namespace shoal::comm
