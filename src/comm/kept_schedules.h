// SPDX-License-Identifier: Apache-2.0
// The schedules of a group's last collectives, to be used again: a solver or a model makes the same calls
// with the same buffers again and again, and to plan one takes a tenth of the time that a small message takes
// between hosts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/schedule.h"

namespace shoal::comm {

class KeptSchedules {
 public:
  /// That of the same operation, unless it is under way; null: there is none.
  std::shared_ptr<const Schedule> find(const Operation& collective) const;
  /// For the next time, in place of the oldest. What would hold much memory, or can run only once, is not
  /// kept.
  void keep(const Operation& collective, std::shared_ptr<const Schedule> schedule);

 private:
  struct Entry {
    Operation operation;  // its spans refer to nothing
    std::vector<std::int64_t> counts, recv_counts;
    std::shared_ptr<const Schedule> schedule;
  };
  static bool same(const Entry& entry, const Operation& operation);

  std::array<Entry, 8> entries_;  // a root each of a small group, or the calls of an iteration
  std::size_t oldest_ = 0;
};

}  // namespace shoal::comm
