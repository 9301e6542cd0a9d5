// SPDX-License-Identifier: Apache-2.0
// Symmetric segments: on every PE one segment of n elements for each peer, which that peer alone
// writes. So writers never contend, and a receiver needs no call to receive: it waits for a signal.
//
//   SymmetricSegments<float> segments(communicator, n);
//   segments.put(peer, 0, values, sequence);     // into my segment on `peer`, then its signal
//   segments.wait(peer, sequence);               // until the peer's signal has reached `sequence`
//   segments.from(peer)                          // what it wrote here
//
// Sequence numbers only grow, one series for each pair of PEs and direction. There is no notification
// but the signal, and no protection of a segment that is written again: use two halves in turn, and
// write a half again only when something that came from the peer says that it was read.
// Construction is collective. Destruction is local, and for memory that no peer still writes to: where a
// last put may still be under way, flush and then a barrier come first.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include "shoal/base/view.h"
#include "shoal/comm/communicator.h"

namespace shoal::comm {

/// A signal that is waited for.
struct Awaited {
  Rank peer = 0;
  std::uint64_t sequence = 0;
};

/// The untyped part of SymmetricSegments; offsets and lengths in bytes. Calls with a peer throw
/// invalid_argument for a rank or a range that is not there.
class SegmentMemory {
 public:
  /// Bytes of symmetric memory that `ranks` segments of `segment_bytes` take on each PE.
  static std::size_t footprint(int ranks, std::size_t segment_bytes);

  /// Collective. Throws out_of_memory on all ranks when one has no room.
  SegmentMemory(const Communicator& communicator, std::size_t segment_bytes);
  ~SegmentMemory();
  SegmentMemory(SegmentMemory&&) noexcept;
  SegmentMemory& operator=(SegmentMemory&&) noexcept;

  void put(Rank peer, std::size_t offset, const void* source, std::size_t bytes);
  void put(Rank peer, std::size_t offset, const void* source, std::size_t bytes, std::uint64_t sequence);
  void get(Rank peer, std::size_t offset, void* destination, std::size_t bytes);
  std::byte* from(Rank peer);
  std::byte* direct(Rank peer);
  std::uint64_t received(Rank peer) const;
  /// Without a deadline that of the job counts, and passing it throws timeout; with one, it returns
  /// false (wait_any: nothing). milliseconds::max() is for ever.
  bool wait_all(std::span<const Awaited> signals, std::optional<std::chrono::milliseconds> deadline);
  std::optional<std::size_t> wait_any(std::span<const Awaited> signals,
                                      std::optional<std::chrono::milliseconds> deadline);
  void fence();
  void flush();
  std::size_t segment_bytes() const;
  /// Throws unsupported for device memory, which no transport puts yet.
  static void host_only(MemorySpace space);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

template <class T>
class SymmetricSegments {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SymmetricSegments(const Communicator& communicator, std::size_t elements_per_peer)
      : memory_(communicator, bytes_of(elements_per_peer)), elements_(elements_per_peer) {}

  std::size_t elements_per_peer() const { return elements_; }

  /// Writes into my segment on `peer`, from element `offset` on. Visible after a later put with a
  /// sequence number, or flush. `values` is free on return. Throws invalid_argument past the end.
  void put(Rank peer, std::size_t offset, View<const T> values) {
    memory_.put(peer, bytes_of(offset), host(values), values.size() * sizeof(T));
  }
  /// The same, and then sets my signal on `peer` to `sequence` (which must grow).
  void put(Rank peer, std::size_t offset, View<const T> values, std::uint64_t sequence) {
    memory_.put(peer, bytes_of(offset), host(values), values.size() * sizeof(T), sequence);
  }
  /// The signal alone.
  void signal(Rank peer, std::uint64_t sequence) { memory_.put(peer, 0, nullptr, 0, sequence); }

  /// Reads back what is in my segment on `peer`.
  void get(Rank peer, std::size_t offset, View<T> values) {
    memory_.get(peer, bytes_of(offset), host(values), values.size() * sizeof(T));
  }

  /// Waits until the signal of `peer` is at least `sequence`, with the job's deadline: then throws
  /// timeout, naming the silent peer and its host.
  void wait(Rank peer, std::uint64_t sequence) {
    const Awaited signal{peer, sequence};
    memory_.wait_all({&signal, 1}, std::nullopt);
  }
  /// With a deadline of its own: false when it has passed.
  bool wait_for(Rank peer, std::uint64_t sequence, std::chrono::milliseconds deadline) {
    const Awaited signal{peer, sequence};
    return memory_.wait_all({&signal, 1}, deadline);
  }
  /// For ever: for a PE that has nothing to do until somebody wants it. Sleeps, nearly idle.
  void wait_forever(Rank peer, std::uint64_t sequence) {
    const Awaited signal{peer, sequence};
    memory_.wait_all({&signal, 1}, std::chrono::milliseconds::max());
  }

  /// Until all of `signals` have come; the timeout names those that have not.
  void wait_all(std::span<const Awaited> signals) { memory_.wait_all(signals, std::nullopt); }
  bool wait_all_for(std::span<const Awaited> signals, std::chrono::milliseconds deadline) {
    return memory_.wait_all(signals, deadline);
  }
  /// Until one of `signals` (at least one) has come: the index of the first in the list that has.
  std::size_t wait_any(std::span<const Awaited> signals) { return *memory_.wait_any(signals, std::nullopt); }
  std::optional<std::size_t> wait_any_for(std::span<const Awaited> signals,
                                          std::chrono::milliseconds deadline) {
    return memory_.wait_any(signals, deadline);
  }

  /// The latest sequence number that has arrived from `peer`.
  std::uint64_t received(Rank peer) const { return memory_.received(peer); }

  /// The segment here that `peer` writes.
  std::span<T> from(Rank peer) { return {reinterpret_cast<T*>(memory_.from(peer)), elements_}; }

  /// My segment on `peer` where it can be loaded and stored from here, else empty. After storing,
  /// signal(peer, sequence) publishes.
  std::span<T> direct(Rank peer) {
    std::byte* memory = memory_.direct(peer);
    return memory ? std::span<T>(reinterpret_cast<T*>(memory), elements_) : std::span<T>();
  }

  /// Between two puts to one peer that write the same elements: the later one wins. (Not needed for signals:
  /// a put with a sequence number covers all earlier puts to that peer.) Waits for nothing.
  void fence() { memory_.fence(); }

  /// Returns when all my puts have arrived.
  void flush() { memory_.flush(); }

 private:
  // The largest number there is, which is refused, where the product would not fit.
  static std::size_t bytes_of(std::size_t elements) {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    return elements > most / sizeof(T) ? most : elements * sizeof(T);
  }
  template <class U>
  static U* host(View<U> values) {
    SegmentMemory::host_only(values.space());
    return values.data();
  }
  SegmentMemory memory_;
  std::size_t elements_;
};

}  // namespace shoal::comm
