// SPDX-License-Identifier: Apache-2.0
// Which ranks share a host, that is memory.
#pragma once

#include <string>
#include <vector>

#include "shoal/comm/operation.h"

namespace shoal::comm {

/// A number for each rank of the job, equal for two that can share memory, from what each says of its host.
/// Tests set SHOAL_FAKE_HOSTS=k to treat one machine as k hosts, the first ranks on the first of them, or
/// SHOAL_FAKE_HOSTS=k,interleaved: one rank on each in turn.
std::vector<int> number_hosts(const std::vector<std::string>& identities);

/// How the members of a group lie on hosts. Ranks are those of the group.
struct Hosts {
  std::vector<std::vector<Rank>> members;  // of each host, ascending; hosts in the order of their first
  int mine = 0;                            // my host
  int local = 0;                           // my place in members[mine]

  int count() const { return static_cast<int>(members.size()); }
  const std::vector<Rank>& here() const { return members[static_cast<std::size_t>(mine)]; }
};

/// `host_of` is by rank of the job.
Hosts find_hosts(const Group& group, const std::vector<int>& host_of);

/// Every member on a host of its own.
Hosts each_apart(const Group& group);

/// The part of `group` that is on my host, as a group of its own, with a context that no other has.
Group host_part(const Group& group, const Hosts& hosts);

}  // namespace shoal::comm
