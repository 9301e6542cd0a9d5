// SPDX-License-Identifier: Apache-2.0
// The array between the two halves of a transform of slabs, in memory that all ranks of a host can reach:
// each rank writes its rows of every peer's columns to where the peer wants them, past the caches, and on the
// way back reads them there. Nothing is packed, sent or unpacked.
#pragma once

#include <memory>
#include <vector>

#include "shoal/array/layout.h"
#include "shoal/comm/symmetric_segments.h"

namespace shoal::linop {

/// On every rank an array [n0, own columns, rest]: the rows of each rank are a segment.
template <class C>
class SlabMemory {
 public:
  using Rank = array::Rank;
  using Index = array::Index;

  /// Collective: none where some rank cannot reach another's memory, or where there is no room. `largest`
  /// elements are the largest part, of some rank's rows and some rank's columns.
  static std::shared_ptr<SlabMemory> make(const comm::Communicator& communicator, Index largest);

  /// Rows of `peer`, columns of this rank.
  const C* rows_of(Rank peer) const { return here_[static_cast<std::size_t>(peer)]; }
  C* rows_of(Rank peer) { return here_[static_cast<std::size_t>(peer)]; }
  /// Rows of this rank, columns of `peer`.
  C* columns_of(Rank peer) const { return there_[static_cast<std::size_t>(peer)]; }

  /// Collective: what was stored before is there for all after. Stands before the first store (all have read
  /// what was there) and before the first load.
  void meet();

 private:
  SlabMemory(const comm::Communicator& communicator, std::unique_ptr<comm::SymmetricSegments<C>> segments);
  Rank me_;
  std::unique_ptr<comm::SymmetricSegments<C>> segments_;
  std::vector<C*> here_, there_;
  std::uint64_t sequence_ = 0;
};

}  // namespace shoal::linop
