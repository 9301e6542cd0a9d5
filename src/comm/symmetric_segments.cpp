// SPDX-License-Identifier: Apache-2.0
// Layout of the allocation on each PE: one cache line a peer for its signal, then the segments.
#include "shoal/comm/symmetric_segments.h"

#include <atomic>

#include <fmt/format.h>

#include "comm/wait_board.h"
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
           fmt::format("segment: {} bytes from byte {} on are past its end at {}", length, offset, bytes));
  }

  // False after a deadline of the caller's; after that of the job, the error names the `silent` ones.
  template <class Done, class Silent>
  bool wait(std::span<const Awaited> signals, Done&& done, Silent&& silent,
            std::optional<std::chrono::milliseconds> deadline) {
    for (const Awaited& signal : signals) check(signal.peer, 0, 0);
    Transport& transport = communicator.transport();
    const auto progress = [&] { transport.progress(); };
    const auto who = [&] {
      std::vector<Rank> ranks;
      for (const Awaited& signal : signals)
        if (silent(signal)) ranks.push_back(communicator.world_rank(signal.peer));
      return ranks;
    };
    if (deadline) return wait_for_peers(transport.wait_board(), done, progress, *deadline, who);
    wait_or_fail(transport.wait_board(), transport.world(), "", done, progress, who);
    return true;
  }
};

std::size_t SegmentMemory::footprint(int ranks, std::size_t segment_bytes) {
  if (segment_bytes > (std::size_t{1} << 62) / static_cast<std::size_t>(ranks))
    fail(ErrorCode::invalid_argument,
         fmt::format("segments of {} bytes for each of {} ranks are more than 64 bits count", segment_bytes,
                     ranks));
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

bool SegmentMemory::wait_all(std::span<const Awaited> signals,
                             std::optional<std::chrono::milliseconds> deadline) {
  const auto came = [&](const Awaited& signal) { return received(signal.peer) >= signal.sequence; };
  std::size_t next = 0;  // all before it have come
  return state_->wait(
      signals,
      [&] {
        while (next < signals.size() && came(signals[next])) ++next;
        return next == signals.size();
      },
      [&](const Awaited& signal) { return !came(signal); }, deadline);
}

std::optional<std::size_t> SegmentMemory::wait_any(std::span<const Awaited> signals,
                                                   std::optional<std::chrono::milliseconds> deadline) {
  if (signals.empty()) fail(ErrorCode::invalid_argument, "segment: wait_any for no signal");
  std::size_t first = signals.size();
  state_->wait(
      signals,
      [&] {
        for (first = 0; first < signals.size(); ++first)
          if (received(signals[first].peer) >= signals[first].sequence) return true;
        return false;
      },
      [](const Awaited&) { return true; }, deadline);
  return first < signals.size() ? std::optional(first) : std::nullopt;
}

void SegmentMemory::host_only(MemorySpace space) {
  if (space == MemorySpace::device)
    fail(ErrorCode::unsupported, "segment: this transport does not carry device memory");
}

void SegmentMemory::fence() { state_->memory->fence(); }
void SegmentMemory::flush() { state_->memory->flush(); }
std::size_t SegmentMemory::segment_bytes() const { return state_->bytes; }

}  // namespace shoal::comm
