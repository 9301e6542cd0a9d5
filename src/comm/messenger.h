// SPDX-License-Identifier: Apache-2.0
// The one primitive that the collective algorithms stand on: a set of messages in both directions,
// completed together, so that there is no order of sends and receives to get wrong.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "shoal/comm/operation.h"

namespace shoal::comm {

/// A message to or from `peer` (rank in the group).
struct OutgoingPart {
  Rank peer;
  const void* data;
  std::size_t bytes;
};
struct IncomingPart {
  Rank peer;
  void* data;
  std::size_t bytes;
};

/// Tags of programs are >= 0. Collectives take the negative ones in turn, so that several can be under
/// way in a group, and one for agreeing on new groups.
inline constexpr int collective_tags = 4096;
inline constexpr int subset_tag = -collective_tags - 1;

/// Messages that are under way.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual bool done() = 0;
  /// The ranks of the world that it still waits for.
  virtual std::vector<Rank> waiting_for() const = 0;
  /// Whether done() moves the library on. That takes about a microsecond, and gives the processor to others
  /// where ranks share it.
  virtual bool polls_library() const { return false; }
};

class Messenger {
 public:
  virtual ~Messenger() = default;
  /// Starts all of `sends` and `receives`. Between two ranks of a group, messages of a tag match in
  /// order; a length that differs from the sender's throws, here or from done().
  virtual std::unique_ptr<Exchange> start(const Group& group, int tag, std::span<const OutgoingPart> sends,
                                          std::span<const IncomingPart> receives) = 0;
};

}  // namespace shoal::comm
