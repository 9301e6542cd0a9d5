// SPDX-License-Identifier: Apache-2.0
// Passes pieces of an array between the ranks of one host while they are in the caches: each rank makes one
// item after the other, writes a piece of it into every peer's memory, and takes in the peers' pieces of the
// item before. Slots are used in turn.
#pragma once

#include <memory>
#include <vector>

#include "shoal/array/layout.h"
#include "shoal/comm/symmetric_segments.h"

namespace shoal::linop {

template <class C>
class TilePipe {
 public:
  using Rank = array::Rank;
  using Index = array::Index;

  /// Collective: none where some rank cannot write into another's memory, or where there is no room.
  /// `slot` elements are the largest piece.
  static std::shared_ptr<TilePipe> make(const comm::Communicator& communicator, Index slot);

  /// Collective; `items` is the same on every rank. For each item: work.produce(item), then
  /// work.fill(item, peer, slot) for each peer, which writes what is for that one straight into its memory;
  /// work.consume(item, peer, slot) for each peer's piece of the rank's own share, and work.finish(item).
  /// work.own(item) is the piece that stays: with `Work::own_at_once` it comes before the next item is made,
  /// else with the others'.
  template <class Work>
  void run(Index items, Work& work) {
    for (Index item = 0; item < items; ++item) {
      work.produce(item);
      const std::uint64_t sequence = ++sequence_;
      for (const Rank peer : peers_) {
        if (sequence > slots - 2) segments_->wait(peer, sequence - (slots - 2));
        work.fill(item, peer, segments_->direct(peer).data() + slot_of(sequence));
        segments_->signal(peer, sequence);
      }
      if (Work::own_at_once) work.own(item);
      if (item > 0) take(item - 1, sequence - 1, work);
    }
    if (items > 0) take(items - 1, sequence_, work);
  }

 private:
  // A peer that has put item s has taken in item s - 2.
  static constexpr std::uint64_t slots = 4;

  TilePipe(const comm::Communicator& communicator, std::unique_ptr<comm::SymmetricSegments<C>> segments,
           Index slot);

  std::size_t slot_of(std::uint64_t sequence) const {
    return static_cast<std::size_t>(sequence % slots) * slot_;
  }
  template <class Work>
  void take(Index item, std::uint64_t sequence, Work& work) {
    if (!Work::own_at_once) work.own(item);
    for (const Rank peer : peers_) {
      segments_->wait(peer, sequence);
      work.consume(item, peer, segments_->from(peer).data() + slot_of(sequence));
    }
    work.finish(item);
  }

  Rank me_;
  std::vector<Rank> peers_;  // from the next rank on, so that not all put to one at once
  std::unique_ptr<comm::SymmetricSegments<C>> segments_;
  std::size_t slot_;
  std::uint64_t sequence_ = 0;
};

}  // namespace shoal::linop
