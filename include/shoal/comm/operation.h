// SPDX-License-Identifier: Apache-2.0
// What a communicator asks of a transport: one value, type-erased.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/base/view.h"

namespace shoal::comm {

/// Number of a process (PE) within a communicator, 0 .. size-1.
using Rank = int;

enum class Reduction : std::uint8_t { sum, product, min, max, logical_and, logical_or };
const char* to_string(Reduction reduction);

/// The members of a communicator. Immutable; the same on all members but for `rank`.
struct Group {
  std::uint64_t context = 0;     // differs between any two groups that share a member
  std::vector<Rank> world_rank;  // of each member
  Rank rank = 0;                 // mine

  int size() const { return static_cast<int>(world_rank.size()); }
};

enum class Pattern : std::uint8_t { barrier, broadcast, all_reduce, all_gather, send, recv };
const char* to_string(Pattern pattern);

/// One communication. What is used of it depends on the pattern:
///   barrier      nothing
///   broadcast    root = peer; `send` on the root and `recv` elsewhere, of the same count
///   all_reduce   send, recv (same count; may be the same memory), reduction
///   all_gather   send, recv, counts (elements of each rank, in rank order; recv holds their sum)
///   send, recv   peer, tag >= 0, and the buffer of that name
struct Operation {
  Pattern pattern = Pattern::barrier;
  Reduction reduction = Reduction::sum;
  Rank peer = 0;
  int tag = 0;
  Buffer send{};
  Buffer recv{};
  std::span<const std::int64_t> counts{};
};

}  // namespace shoal::comm
