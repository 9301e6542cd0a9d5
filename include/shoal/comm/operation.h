// SPDX-License-Identifier: Apache-2.0
// What a communicator asks of a transport: one value, type-erased.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shoal/base/view.h"

namespace shoal::comm {

/// Number of a process (PE) within a communicator, 0 .. size-1.
using Rank = int;

/// min and max give NaN where one of the values is NaN; of Located values they give the value and its place
/// (see located.h). Complex numbers have no order; the logical ones are for integers and bool.
enum class Reduction : std::uint8_t { sum, product, min, max, logical_and, logical_or };
const char* to_string(Reduction reduction);
bool is_defined(Reduction reduction, DType dtype);

/// What a transport keeps for a group between open() and close().
class GroupState;

/// The members of a communicator. Immutable; the same on all members but for `rank`.
struct Group {
  std::uint64_t context = 0;     // differs between any two groups that share a member
  std::vector<Rank> world_rank;  // of each member
  Rank rank = 0;                 // mine
  mutable std::shared_ptr<GroupState> state{};

  int size() const { return static_cast<int>(world_rank.size()); }
};

enum class Pattern : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  all_reduce,
  reduce_scatter,
  gather,
  all_gather,
  scatter,
  all_to_all,
  scan,
  exclusive_scan,
  exchange,
  send,
  recv,
};
const char* to_string(Pattern pattern);
/// Whether every member of the group takes part (as against send, recv and exchange).
bool is_collective(Pattern pattern);
/// Whether Operation::peer is a root.
bool has_root(Pattern pattern);

/// One message of Pattern::exchange.
struct Part {
  Rank peer = 0;
  Buffer buffer{};
};

/// One communication. What is used of it depends on the pattern:
///   barrier         nothing
///   broadcast       root = peer; recv (what the root sends and the others receive)
///   reduce          root = peer; send, recv (on the root; the same count), reduction
///   all_reduce      send, recv (same count; may be the same memory), reduction
///   reduce_scatter  send (sum of counts), recv (my count), counts of each rank, reduction
///   gather          root = peer; send (my count), recv (on the root: sum of counts), counts of each rank
///   all_gather      send (my count), recv (sum of counts), counts of each rank
///   scatter         root = peer; send (on the root: sum of counts), recv (my count), counts of each rank
///   all_to_all      send (sum of counts), recv (sum of recv_counts): to and from each rank
///   scan            send, recv (same count; may be the same memory), reduction
///   exclusive_scan  the same
///   exchange        sends, receives, tag >= 0
///   send, recv      peer, tag >= 0, and the buffer of that name
/// Counts are in elements and in rank order; parts lie one after the other.
struct Operation {
  Pattern pattern = Pattern::barrier;
  Reduction reduction = Reduction::sum;
  Rank peer = 0;
  int tag = 0;
  Buffer send{};
  Buffer recv{};
  std::span<const std::int64_t> counts{};
  std::span<const std::int64_t> recv_counts{};
  std::span<const Part> sends{};
  std::span<const Part> receives{};
};

}  // namespace shoal::comm
