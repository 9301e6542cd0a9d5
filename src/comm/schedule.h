// SPDX-License-Identifier: Apache-2.0
// An operation as a list of rounds: messages, then some local work. Schedules are the same on every
// transport, and sums run in rank order, so all transports give the same bits.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "comm/messenger.h"

namespace shoal::comm {

struct Round {
  std::vector<OutgoingPart> sends;
  std::vector<IncomingPart> receives;
  std::function<void()> then;  // after all of them; may be empty
};

struct Schedule {
  int tag = 0;  // of a program's message; collectives are given theirs when they start
  bool collective = true;
  std::vector<Round> rounds;
  std::vector<std::byte> scratch;  // that rounds point into; never resized after they were made
};

/// Throws invalid_argument where this rank alone can see that the operation makes no sense.
Schedule make_schedule(const Group& group, const Operation& operation);

}  // namespace shoal::comm
