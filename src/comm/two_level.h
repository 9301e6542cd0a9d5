// SPDX-License-Identifier: Apache-2.0
// Collectives where several ranks share a host: each host gathers what it has to say, one rank of each host
// (its leader) talks to the others', and each host spreads what has come. So the network carries one
// message where it would carry one for each pair of ranks, and large data once instead of once a rank.
//
// Partial sums run in rank order within a host, then over the hosts; the bits are the same on all ranks, and
// the same for the same ranks on the same hosts.
#pragma once

#include "comm/schedule.h"

namespace shoal::comm {

/// Adds the rounds of a collective other than a scan. There are several hosts, and several ranks on one.
void two_level(Schedule& schedule, const Group& group, const Hosts& hosts, const Operation& operation);

/// The same for all_to_all alone, whose counts no rank knows all of. There all ranks of a host talk to
/// others, each to those that have its place.
void two_level_all_to_all(Schedule& schedule, const Group& group, const Hosts& hosts,
                          const Operation& operation);

/// What a host says to another goes in one message up to here; more goes straight from rank to rank, since
/// collecting it would cost more than the messages do.
inline constexpr std::size_t collected_bytes = std::size_t{64} << 10;

}  // namespace shoal::comm
