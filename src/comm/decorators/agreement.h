// SPDX-License-Identifier: Apache-2.0
// What all members of a group must call alike, and the words for it when they do not.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/decorators/call.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

/// A collective call as the other members see it. Fields that need not be equal are 0.
struct CallDescription {
  enum Field { call, root, dtype, count, reduction, counts_hash, bytes, fields };
  std::array<std::int64_t, fields> field{};

  static CallDescription of(const Operation& operation);
  static CallDescription of_allocation(std::size_t bytes);
};

/// "rank 1 (node2)"; in a part of the job "rank 1 (PE 3 on node2)".
std::string name_of(const World& world, const Group& group, Rank rank);

/// Compares what all members have described. Returns what is wrong, the same text on every member, or "".
/// `number` is that of the collective in its group, from 1. Counts that differ are left to compare_counts.
std::string compare_calls(const World& world, const Group& group, std::span<const CallDescription> calls,
                          std::uint64_t number);

/// Whether the members' vectors of counts must be looked at: they differ, or belong to all_to_all.
bool needs_counts(std::span<const CallDescription> calls);

/// `counts` has each member's Operation::counts and, for all_to_all, behind it its recv_counts.
std::string compare_counts(const World& world, const Group& group, std::span<const CallDescription> calls,
                           std::span<const std::int64_t> counts, std::uint64_t number);

}  // namespace shoal::comm
