// SPDX-License-Identifier: Apache-2.0
// Memory that ranks of one host share for their collectives: a table of slots on every rank, handed out to
// groups as they are opened and taken back when they are closed.
//
// Which slot a group has may differ from rank to rank, so taking and giving back are local; the members tell
// each other (Offer) when they open. A slot's words only ever grow, over all the groups that it serves. So a
// rank that has closed a group can tell later, from the others' slots, whether they have closed it as well,
// and only then is its own free again: until then they may still read it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/shared_copy.h"
#include "comm/tuning.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

/// The words of a slot, written by its owner alone, but for `copy`, and read by the others.
struct HostLine {
  std::uint64_t word;  // the step that has been published (HostCollectives tells how)
  std::byte payload[tuning::cache_line - sizeof(std::uint64_t)];  // small data travels with its step
};
static_assert(sizeof(HostLine) == tuning::cache_line);
struct HostSlot {
  HostLine step[2];  // even and odd steps
  HostLine closed;   // word: a step of the last group that was closed
  CopyLine copy;     // between this rank and the root, numbered by steps (HostTask); changed by both
};

/// A word is the number of a step and, in its low bits, a mark of the operation that the step belongs to.
inline constexpr int mark_bits = 16;  // 48 are left: months of steps of 0.1 us
inline constexpr std::uint64_t mark_mask = (std::uint64_t{1} << mark_bits) - 1;
inline std::uint64_t load_word(const std::uint64_t& word) {
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
inline void store_word(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_release);
}

class HostArena {
 public:
  /// What a member of a new group tells the others; plain bytes.
  struct Offer {
    std::int32_t slot = -1;                 // none: this rank has no room, or no way to a member's memory
    std::int32_t crowded = 0;               // its host is known to have more ranks than cores
    std::uint64_t last_step = 0;            // of the groups that the slot has served
    std::array<std::uint64_t, 16> cores{};  // bits of those that it may run on
  };

  /// A member's slot.
  struct Member {
    HostSlot* words = nullptr;
    std::byte* data = nullptr;  // two halves, for even and odd steps
  };

  /// The slots of a group's members; closes the group when it is dropped.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    std::span<const Member> members() const { return members_; }
    std::uint64_t first_step() const { return first_step_; }  // the same on all members, as are these:
    std::size_t half_bytes() const { return half_bytes_; }
    bool crowded() const { return crowded_; }  // more ranks than cores
    /// Tells how far the group got; before the lease is dropped.
    void set_last_step(std::uint64_t step) { last_step_ = step; }

   private:
    friend class HostArena;
    HostArena* arena_ = nullptr;
    int slot_ = -1;
    Rank rank_ = 0;
    std::uint64_t first_step_ = 0;
    std::uint64_t last_step_ = 0;
    std::size_t half_bytes_ = 0;
    bool crowded_ = false;
    std::vector<Member> members_;
  };

  static std::size_t footprint();
  static std::size_t zeroed_bytes();  // the first so many must be 0, the others may be anything

  /// `memory` is an allocation of all ranks of the world, footprint() bytes; those whose memory cannot be
  /// loaded and stored from here take no part.
  explicit HostArena(std::unique_ptr<SymmetricMemory> memory);

  /// Takes a slot for a group of these ranks of the world, or offers none. An offer is then opened or
  /// withdrawn.
  Offer take(std::span<const Rank> world_ranks, bool whole_world);
  void withdraw(const Offer& offer);
  /// Offers of all members, in rank order; all of them must have a slot.
  Lease open(std::span<const Rank> world_ranks, Rank rank, std::span<const Offer> offers);
  /// The memory goes; leases that are left are dropped without a trace.
  void abandon() { memory_.reset(); }

 private:
  struct Retired {
    int slot;
    std::uint64_t first_step;
    std::vector<Member> members;
  };
  HostSlot* words(Rank world_rank, int slot) const;
  std::byte* data(Rank world_rank, int slot) const;
  void retire(Lease& lease) noexcept;
  void reap();

  std::unique_ptr<SymmetricMemory> memory_;
  std::vector<bool> free_;
  std::vector<std::uint64_t> last_step_;  // of each slot
  std::vector<Retired> retired_;          // closed here, perhaps not yet by others
  bool crowded_ = false;
};

}  // namespace shoal::comm
