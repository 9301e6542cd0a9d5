// SPDX-License-Identifier: Apache-2.0
// Collectives by messages between ranks that share no memory: each call adds its rounds to a schedule. The
// algorithm depends on the number of ranks and bytes alone, so that all ranks choose the same. With few
// ranks everybody sends to everybody at once, which is one latency; with many the number of messages
// that a rank handles grows with the logarithm (small data) or the bytes stay at the least there is (large).
//
// Results of reductions are the same bits on all ranks. Where everybody combines everybody's (few ranks, or
// `rank_order`), the order is that of the circle; half precision must then be wide already, except in
// that order, where it is rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/parts.h"
#include "comm/schedule.h"

namespace shoal::comm {

/// The ranks that take part, in the order in which they count here.
struct Circle {
  std::vector<Rank> ranks;  // in the group
  int me = 0;               // my place

  int size() const { return static_cast<int>(ranks.size()); }
  Rank at(int place) const { return ranks[static_cast<std::size_t>(place)]; }
};

/// What is combined: `count` elements from `in`, to `out`, which may be the same.
struct Combination {
  const void* in;
  void* out;
  std::int64_t count;
  DType dtype;
  Reduction reduction;

  std::size_t bytes() const { return static_cast<std::size_t>(count) * size_of(dtype); }
};

/// With more ranks than this no rank talks to all others at once.
inline constexpr int few_ranks = 4;

class MessageRounds {
 public:
  MessageRounds(Schedule& schedule, const Circle& circle, bool rank_order)
      : schedule_(schedule), circle_(circle), rank_order_(rank_order) {}

  void barrier();
  /// The data is where it belongs before the last of the rounds, so that what spreads it further can be
  /// added to that one. `root` is a place in the circle, as below.
  void broadcast(int root, void* data, std::size_t bytes);
  void reduce(int root, const Combination& what);
  void all_reduce(const Combination& what);
  /// what.out gets my part; counts are by place.
  void reduce_scatter(const Combination& what, std::span<const std::int64_t> counts);
  /// `mine` may be its place in `out`. Parts lie in `out` at `parts`.
  void all_gather(const void* mine, void* out, const Parts& parts);
  /// Part r of `in` goes to place r, part r of `out` comes from it.
  void all_to_all(const void* in, const Parts& sent, void* out, const Parts& received);

  /// Of everybody's, in the order of the circle.
  void scan(const Combination& what, bool inclusive);
  /// The same bits (but for half precision) by a message from each place to the next: as many latencies as
  /// there are ranks, but few messages. For circles most of whose neighbours share a host.
  void scan_along(const Combination& what, bool inclusive);

 private:
  int size() const { return circle_.size(); }
  int me() const { return circle_.me; }
  int place(int relative) const { return (relative % size() + size()) % size(); }
  static std::size_t index(int place) { return static_cast<std::size_t>(place); }

  void scatter_and_gather(int root, void* data, std::size_t bytes);
  void one_shot(const Combination& what);
  void recursive_doubling(const Combination& what);
  void direct_reduce_scatter(const Combination& what, std::span<const std::int64_t> counts);
  void ring_reduce_scatter(const Combination& what, std::span<const std::int64_t> counts);
  void direct_all_gather(const void* mine, void* out, const Parts& parts);
  void ring_all_gather(void* out, const Parts& parts);
  void doubling_all_gather(const void* mine, void* out, const Parts& parts);
  void binomial_reduce(int root, const Combination& what);

  Schedule& schedule_;
  const Circle& circle_;
  bool rank_order_;
};

}  // namespace shoal::comm
