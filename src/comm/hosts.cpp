// SPDX-License-Identifier: Apache-2.0
#include "comm/hosts.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

namespace shoal::comm {

std::vector<int> number_hosts(const std::vector<std::string>& identities) {
  const char* fake = std::getenv("SHOAL_FAKE_HOSTS");
  const auto size = static_cast<int>(identities.size());
  const int fakes = fake ? std::clamp(std::atoi(fake), 1, size) : 0;
  const bool interleaved = fake && std::string_view(fake).ends_with(",interleaved");
  const bool apart = std::getenv("SHOAL_NO_HOST_MEMORY") != nullptr;
  std::vector<int> numbers;
  std::map<std::string, int> known;
  for (int rank = 0; rank < size; ++rank) {
    if (apart)
      numbers.push_back(rank);
    else if (fakes > 0)
      numbers.push_back(interleaved ? rank % fakes : rank / ((size + fakes - 1) / fakes));
    else
      numbers.push_back(known.try_emplace(identities[static_cast<std::size_t>(rank)], rank).first->second);
  }
  return numbers;
}

Hosts find_hosts(const Group& group, const std::vector<int>& host_of) {
  Hosts hosts;
  std::map<int, std::size_t> place;  // of a host in `members`
  for (Rank rank = 0; rank < group.size(); ++rank) {
    const int host = host_of[static_cast<std::size_t>(group.world_rank[static_cast<std::size_t>(rank)])];
    const auto found = place.try_emplace(host, hosts.members.size());
    if (found.second) hosts.members.emplace_back();
    std::vector<Rank>& members = hosts.members[found.first->second];
    if (rank == group.rank) {
      hosts.mine = static_cast<int>(found.first->second);
      hosts.local = static_cast<int>(members.size());
    }
    members.push_back(rank);
  }
  return hosts;
}

Hosts each_apart(const Group& group) {
  Hosts hosts;
  for (Rank rank = 0; rank < group.size(); ++rank) hosts.members.push_back({rank});
  hosts.mine = group.rank;
  return hosts;
}

Group host_part(const Group& group, const Hosts& hosts) {
  Group part;
  part.context = group.context | std::uint64_t{1} << 63;  // contexts are counted from 0
  part.rank = hosts.local;
  for (const Rank rank : hosts.here())
    part.world_rank.push_back(group.world_rank[static_cast<std::size_t>(rank)]);
  return part;
}

}  // namespace shoal::comm
