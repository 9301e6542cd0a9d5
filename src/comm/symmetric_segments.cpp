// SPDX-License-Identifier: Apache-2.0
// Layout of the allocation on each PE: one cache line a peer for its signal, then the segments.
#include "shoal/comm/symmetric_segments.h"

#include <atomic>

#include <fmt/format.h>

#include "comm/wait.h"
#include "shoal/base/error.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {
namespace {

constexpr std::size_t line = 64;

std::size_t padded(std::size_t bytes) { return (bytes + line - 1) / line * line; }

}  // namespace

struct SegmentMemory::State {
  Communicator communicator;
  std::unique_ptr<SymmetricMemory> memory;
  std::size_t bytes;  // of a segment

  std::size_t signal_offset(Rank writer) const { return static_cast<std::size_t>(writer) * line; }
  std::size_t segment_offset(Rank writer) const {
    const auto ranks = static_cast<std::size_t>(communicator.size());
    return ranks * line + static_cast<std::size_t>(writer) * padded(bytes);
  }
  void check(Rank peer, std::size_t offset, std::size_t length) const {
    if (peer < 0 || peer >= communicator.size())
      fail(ErrorCode::invalid_argument,
           fmt::format("segment: rank {} is not in a communicator of {}", peer, communicator.size()));
    if (offset > bytes || length > bytes - offset)
      fail(ErrorCode::invalid_argument,
           fmt::format("segment: bytes {} to {} are past its end at {}", offset, offset + length, bytes));
  }
};

std::size_t SegmentMemory::footprint(int ranks, std::size_t segment_bytes) {
  return static_cast<std::size_t>(ranks) * (line + padded(segment_bytes));
}

SegmentMemory::SegmentMemory(const Communicator& communicator, std::size_t segment_bytes)
    : state_(std::make_unique<State>(State{communicator, nullptr, segment_bytes})) {
  state_->memory = state_->communicator.allocate(footprint(communicator.size(), segment_bytes));
}

SegmentMemory::~SegmentMemory() = default;
SegmentMemory::SegmentMemory(SegmentMemory&&) noexcept = default;
SegmentMemory& SegmentMemory::operator=(SegmentMemory&&) noexcept = default;

void SegmentMemory::put(Rank peer, std::size_t offset, const void* source, std::size_t bytes) {
  state_->check(peer, offset, bytes);
  state_->memory->put(peer, state_->segment_offset(state_->communicator.rank()) + offset, source, bytes);
}

void SegmentMemory::put(Rank peer, std::size_t offset, const void* source, std::size_t bytes,
                        std::uint64_t sequence) {
  state_->check(peer, offset, bytes);
  const Rank me = state_->communicator.rank();
  state_->memory->put_signal(peer, state_->segment_offset(me) + offset, source, bytes,
                             state_->signal_offset(me), sequence);
}

void SegmentMemory::get(Rank peer, std::size_t offset, void* destination, std::size_t bytes) {
  state_->check(peer, offset, bytes);
  state_->memory->get(peer, state_->segment_offset(state_->communicator.rank()) + offset, destination, bytes);
}

std::byte* SegmentMemory::from(Rank peer) {
  state_->check(peer, 0, 0);
  return state_->memory->local() + state_->segment_offset(peer);
}

std::byte* SegmentMemory::direct(Rank peer) {
  state_->check(peer, 0, 0);
  std::byte* memory = state_->memory->direct(peer);
  return memory ? memory + state_->segment_offset(state_->communicator.rank()) : nullptr;
}

std::uint64_t SegmentMemory::received(Rank peer) const {
  state_->check(peer, 0, 0);
  auto* word = reinterpret_cast<std::uint64_t*>(state_->memory->local() + state_->signal_offset(peer));
  return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
}

bool SegmentMemory::wait(Rank peer, std::uint64_t sequence,
                         std::optional<std::chrono::milliseconds> deadline) {
  Transport& transport = state_->communicator.transport();
  const auto arrived = [&] { return received(peer) >= sequence; };
  const auto limit = deadline.value_or(default_deadline());
  if (wait_until(
          arrived, [&] { transport.progress(); }, limit))
    return true;
  if (deadline) return false;
  fail(ErrorCode::timeout,
       fmt::format("rank {} ({}) has been silent for {} s", state_->communicator.world_rank(peer),
                   state_->communicator.host(peer), limit.count() / 1000));
}

void SegmentMemory::flush() { state_->memory->flush(); }
std::size_t SegmentMemory::segment_bytes() const { return state_->bytes; }

}  // namespace shoal::comm
