// SPDX-License-Identifier: Apache-2.0
// What a transport keeps for a group between open() and close().
#pragma once

#include <deque>
#include <memory>

#include "comm/host_collectives.h"
#include "comm/hosts.h"
#include "comm/kept_schedules.h"

namespace shoal::comm {

class GroupState {
 public:
  explicit GroupState(Hosts where) : hosts(std::move(where)) {}

  const Hosts hosts;
  /// Among the members on this host; null where they share no memory, or there was no room for them.
  std::unique_ptr<HostCollectives> host;
  /// Schedules that have been started and take turns.
  std::deque<const void*> turns;
  KeptSchedules kept;
};

}  // namespace shoal::comm
