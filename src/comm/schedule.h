// SPDX-License-Identifier: Apache-2.0
// An operation as a list of rounds: messages and a collective within the host, then some local work.
// Schedules are the same on every transport, so all transports give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/hosts.h"
#include "comm/messenger.h"
#include "shoal/comm/job.h"

namespace shoal::comm {

/// A collective among the ranks of this host: ranks and counts are those of the host's part of the group.
struct HostStep {
  Operation operation;
  std::vector<std::int64_t> counts, recv_counts{};  // that `operation` refers to
};

struct Round {
  std::vector<OutgoingPart> sends;
  std::vector<IncomingPart> receives;
  std::vector<HostStep> host;  // one after the other, at the same time as the messages
  std::function<void()> then;  // after all of them; may be empty

  bool has_messages() const { return !sends.empty() || !receives.empty(); }
  bool is_local() const { return !has_messages() && host.empty(); }
};

struct Schedule {
  bool once = false;         // its rounds are completed while it runs
  std::size_t reserved = 0;  // bytes of `scratch`
  /// Has host steps: those of a group run one schedule after the other, the same order on all ranks.
  bool in_turn = false;
  std::vector<Round> rounds;  // none is added once work refers to another
  std::vector<std::unique_ptr<std::byte[]>> scratch;

  Round& add() { return rounds.emplace_back(); }
  /// Memory that lives as long as the schedule; its contents are undefined.
  std::byte* reserve(std::size_t bytes);
};

struct ScheduleOptions {
  bool reproducible = false;  // sums in rank order across hosts too
};

/// What the job asks for: JobOptions::reproducible, or SHOAL_REPRODUCIBLE=1.
ScheduleOptions schedule_options(const JobOptions& job);

/// Of an exchange: what a rank sends to itself, matched in order. Throws invalid_argument where it is not
/// what it receives from itself.
void copy_own_parts(Rank me, const Operation& exchange);

/// Throws invalid_argument where this rank alone can see that the operation makes no sense.
Schedule make_schedule(const Group& group, const Hosts& hosts, const Operation& operation,
                       const ScheduleOptions& options);

}  // namespace shoal::comm
