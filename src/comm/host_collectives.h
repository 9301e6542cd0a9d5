// SPDX-License-Identifier: Apache-2.0
// Collectives among ranks that can load and store each other's memory.
//
// Every operation is a series of steps with numbers that only grow. In a step a rank writes what the others
// need into its own slot (HostArena), publishes the step's number there, waits until those have published
// whose data it needs, and reads from their slots. Even and odd steps use different halves of a slot, so
// that step s may be written once everybody has published step s-1: then nobody reads what step s-2 left.
// Small data lies in the cache line of the number itself. Larger data goes in chunks, a step or two each.
// Large data is lent, where ranks can read each other's ordinary memory (PeerMemory): a
// step tells its address, and a last one says that it has been read. Who waits for that meanwhile copies some
// of it, where only a root reads or only a root is read from (SharedReading). A reduction's parts are
// combined one by each rank, which writes the result to whoever wants it. The number of steps depends on the
// group and the operation alone. Sums run in rank order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "comm/host_arena.h"
#include "comm/messenger.h"
#include "comm/peer_memory.h"

namespace shoal::comm {

class HostTask;

class HostCollectives {
 public:
  /// What algorithms are chosen by; the same on all members.
  struct Limits {
    std::size_t chunk_bytes = tuning::chunk_bytes;
    std::size_t crowded_chunk_bytes = tuning::crowded_chunk_bytes;  // more ranks than cores
    std::size_t one_shot_bytes = tuning::one_shot_bytes;
    std::size_t lent_bytes = tuning::lent_bytes;
    std::size_t crowded_lent_bytes = tuning::crowded_lent_bytes;
    std::size_t lent_broadcast_bytes = tuning::lent_broadcast_bytes;
    std::size_t lent_reduce_bytes = tuning::lent_reduce_bytes;
    std::size_t parts_reduce_bytes = tuning::parts_reduce_bytes;
    std::size_t lent_piece_bytes = tuning::lent_piece_bytes;
    std::size_t shared_piece_bytes = tuning::shared_piece_bytes;

    /// Those above, but for what SHOAL_TUNING says: "chunk_bytes=32768,one_shot_bytes=4096". For measuring
    /// them (docs/benchmarks.md); must be the same on all ranks.
    static Limits from_environment();
  };

  /// The members are those of `group`, and `lease` is theirs; for a group of one it may be empty.
  /// `transport` is moved on while waiting, and names the hosts in errors.
  HostCollectives(Transport& transport, const Group& group, HostArena::Lease lease, const Limits& limits);
  ~HostCollectives();
  HostCollectives(const HostCollectives&) = delete;
  HostCollectives& operator=(const HostCollectives&) = delete;

  /// Large data is lent from now on; `memory` is used until this ends. All members agree.
  void lend(const PeerMemory& memory) { peer_memory_ = &memory; }
  bool crowded() const { return lease_.crowded(); }  // more ranks than cores

  /// Bytes that a step moves at most.
  std::size_t chunk_bytes() const { return chunk_bytes_; }
  /// Whether a slot has room for so many members.
  static bool fits(int members);

  /// To the end, after all that was started before. Allocates nothing for short waits. Throws timeout with
  /// the silent ranks' names, invalid_argument where a member is in another operation.
  void run(const Operation& operation);

  /// Returns at once. Its done() moves all on that was started, in the order of the starts, which is the same
  /// on all members.
  std::unique_ptr<Exchange> start(const Operation& operation);

 private:
  friend class HostTask;
  class Started;

  Rank size() const { return static_cast<Rank>(world_rank_.size()); }
  // Of all_to_all: a member's part of a half.
  std::size_t area_bytes() const;
  void publish(std::uint16_t mark);
  // Whether members [next, end) have published `step`, of an operation with `mark` if that is not 0; moves
  // `next` to the first that has not.
  bool reached(Rank& next, Rank end, std::uint64_t step, std::uint16_t mark);
  std::uint64_t latest(Rank member) const;  // step
  [[noreturn]] void refuse(Rank member, std::uint64_t word, std::uint16_t mark) const;

  void wait_for(HostTask& task, Pattern pattern);
  void advance_started();

  Transport& transport_;
  std::vector<Rank> world_rank_;
  Rank rank_;
  Limits limits_;
  HostArena::Lease lease_;
  std::span<const HostArena::Member> members_;
  const PeerMemory* peer_memory_ = nullptr;
  std::size_t half_bytes_;
  std::size_t chunk_bytes_;
  std::size_t lent_bytes_;           // from so many on
  std::uint64_t step_;               // the last that this rank has published
  std::uint64_t seen_ = 0;           // all members have published it
  std::vector<const void*> inputs_;  // of a reduction
  std::vector<std::byte> scratch_;   // of lent inputs
  std::deque<Started*> started_;
};

}  // namespace shoal::comm
