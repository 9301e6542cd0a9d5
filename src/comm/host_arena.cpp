// SPDX-License-Identifier: Apache-2.0
// Layout of each rank's part: the words of all slots, then their data, the first slot's first.
#include "comm/host_arena.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

namespace shoal::comm {
namespace {

constexpr std::size_t slots = tuning::host_slots;

std::size_t half_bytes_of(int slot) {
  return slot == 0 ? tuning::first_half_bytes : tuning::other_half_bytes;
}

std::size_t data_offset(int slot) {
  const std::size_t words = slots * sizeof(HostSlot);
  if (slot == 0) return words;
  return words + 2 * tuning::first_half_bytes + static_cast<std::size_t>(slot - 1) * 2 * half_bytes_of(slot);
}

std::array<std::uint64_t, 16> own_cores() {
  std::array<std::uint64_t, 16> bits{};
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return bits;
  for (std::size_t core = 0; core < 64 * bits.size() && core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) bits[core / 64] |= std::uint64_t{1} << core % 64;
  return bits;
}

}  // namespace

std::size_t HostArena::footprint() { return data_offset(static_cast<int>(slots)); }

std::size_t HostArena::zeroed_bytes() { return slots * sizeof(HostSlot); }

HostArena::HostArena(std::unique_ptr<SymmetricMemory> memory)
    : memory_(std::move(memory)), free_(slots, true), last_step_(slots, 0) {}

HostSlot* HostArena::words(Rank world_rank, int slot) const {
  return reinterpret_cast<HostSlot*>(memory_->direct(world_rank)) + slot;
}
std::byte* HostArena::data(Rank world_rank, int slot) const {
  return memory_->direct(world_rank) + data_offset(slot);
}

HostArena::Offer HostArena::take(std::span<const Rank> world_ranks, bool whole_world) {
  Offer offer{.crowded = crowded_ ? 1 : 0, .cores = own_cores()};
  if (std::getenv("SHOAL_NO_HOST_MEMORY")) return offer;
  for (const Rank peer : world_ranks)
    if (!memory_->direct(peer)) return offer;
  reap();
  // The first slot is the world's: with one kind of slot for all others, offers always fit together.
  for (std::size_t slot = whole_world ? 0 : 1; slot < (whole_world ? 1 : slots); ++slot) {
    if (!free_[slot]) continue;
    free_[slot] = false;
    offer.slot = static_cast<std::int32_t>(slot);
    offer.last_step = last_step_[slot];
    return offer;
  }
  return offer;
}

void HostArena::withdraw(const Offer& offer) {
  if (offer.slot >= 0) free_[static_cast<std::size_t>(offer.slot)] = true;
}

HostArena::Lease HostArena::open(std::span<const Rank> world_ranks, Rank rank,
                                 std::span<const Offer> offers) {
  Lease lease;
  lease.arena_ = this;
  lease.rank_ = rank;
  lease.slot_ = offers[static_cast<std::size_t>(rank)].slot;
  lease.half_bytes_ = half_bytes_of(lease.slot_);
  std::array<std::uint64_t, 16> cores{};
  for (std::size_t r = 0; r < offers.size(); ++r) {
    const Offer& offer = offers[r];
    lease.first_step_ = std::max(lease.first_step_, offer.last_step + 2);
    lease.crowded_ = lease.crowded_ || offer.crowded != 0;
    for (std::size_t i = 0; i < cores.size(); ++i) cores[i] |= offer.cores[i];
    lease.members_.push_back({words(world_ranks[r], offer.slot), data(world_ranks[r], offer.slot)});
  }
  int count = 0;
  for (const std::uint64_t bits : cores) count += std::popcount(bits);
  lease.crowded_ = lease.crowded_ || static_cast<int>(offers.size()) > std::max(count, 1);
  crowded_ = crowded_ || lease.crowded_;
  lease.last_step_ = lease.first_step_;
  HostSlot& mine = *lease.members_[static_cast<std::size_t>(rank)].words;
  for (HostLine& line : mine.step) store_word(line.word, lease.first_step_ << mark_bits);
  return lease;
}

HostArena::Lease::Lease(Lease&& other) noexcept
    : arena_(std::exchange(other.arena_, nullptr)),
      slot_(other.slot_),
      rank_(other.rank_),
      first_step_(other.first_step_),
      last_step_(other.last_step_),
      half_bytes_(other.half_bytes_),
      crowded_(other.crowded_),
      members_(std::move(other.members_)) {}

HostArena::Lease::~Lease() {
  if (arena_) arena_->retire(*this);
}

void HostArena::retire(Lease& lease) noexcept {
  if (!memory_) return;
  last_step_[static_cast<std::size_t>(lease.slot_)] = lease.last_step_;
  store_word(lease.members_[static_cast<std::size_t>(lease.rank_)].words->closed.word, lease.last_step_);
  retired_.push_back({lease.slot_, lease.first_step_, std::move(lease.members_)});
}

// A slot's `closed` was below the first step of any group that was opened later.
void HostArena::reap() {
  std::erase_if(retired_, [&](const Retired& old) {
    for (const Member& member : old.members)
      if (load_word(member.words->closed.word) < old.first_step) return false;
    free_[static_cast<std::size_t>(old.slot)] = true;
    return true;
  });
}

}  // namespace shoal::comm
