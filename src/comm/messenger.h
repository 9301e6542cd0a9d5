// SPDX-License-Identifier: Apache-2.0
// The one primitive that the collective algorithms stand on: a set of messages in both directions,
// completed together, so that there is no order of sends and receives to get wrong.
#pragma once

#include <cstddef>
#include <span>

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

/// Tags of programs are >= 0; collectives use their own, so the two never meet.
inline constexpr int collective_tag = -1;

class Messenger {
 public:
  virtual ~Messenger() = default;
  /// Sends all of `sends` and receives all of `receives`. Between two ranks of a group, messages of a
  /// tag match in order; a length that differs from the sender's throws.
  virtual void exchange(const Group& group, int tag, std::span<const OutgoingPart> sends,
                        std::span<const IncomingPart> receives) = 0;
};

/// Runs any Operation by exchanges (collectives.cpp).
void run_by_messages(Messenger& messenger, const Group& group, const Operation& operation);

}  // namespace shoal::comm
