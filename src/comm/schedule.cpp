// SPDX-License-Identifier: Apache-2.0
#include "comm/schedule.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "comm/message_rounds.h"
#include "comm/parts.h"
#include "comm/two_level.h"
#include "comm/wide.h"
#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

Schedule exchange(Rank me, const Operation& operation) {
  Schedule schedule;
  Round& round = schedule.add();
  copy_own_parts(me, operation);
  for (const Part& part : operation.sends)
    if (part.peer != me) round.sends.push_back({part.peer, part.buffer.data, part.buffer.bytes()});
  for (const Part& part : operation.receives)
    if (part.peer != me) round.receives.push_back({part.peer, part.buffer.data, part.buffer.bytes()});
  return schedule;
}

Schedule messages(Rank me, const Operation& operation) {
  Schedule schedule;
  if (operation.pattern == Pattern::exchange)
    schedule = exchange(me, operation);
  else if (operation.pattern == Pattern::send)
    schedule.add().sends = {{operation.peer, operation.send.data, operation.send.bytes()}};
  else
    schedule.add().receives = {{operation.peer, operation.recv.data, operation.recv.bytes()}};
  return schedule;
}

void gather(Schedule& schedule, const Group& group, const Operation& op) {
  const Parts parts(op.counts, size_of(op.send.dtype));
  const auto index = [](Rank r) { return static_cast<std::size_t>(r); };
  Round& round = schedule.add();
  if (group.rank != op.peer) {
    round.sends = {{op.peer, op.send.data, op.send.bytes()}};
    return;
  }
  for (Rank r = 0; r < group.size(); ++r)
    if (r != op.peer)
      round.receives.push_back({r, at(op.recv.data, parts.begin[index(r)]), parts.bytes[index(r)]});
  round.then = [to = at(op.recv.data, parts.begin[index(op.peer)]), from = op.send] {
    copy_bytes(to, from.data, from.bytes());
  };
}

void scatter(Schedule& schedule, const Group& group, const Operation& op) {
  const Parts parts(op.counts, size_of(op.recv.dtype));
  const auto index = [](Rank r) { return static_cast<std::size_t>(r); };
  Round& round = schedule.add();
  if (group.rank != op.peer) {
    round.receives = {{op.peer, op.recv.data, op.recv.bytes()}};
    return;
  }
  for (Rank r = 0; r < group.size(); ++r)
    if (r != op.peer)
      round.sends.push_back({r, at(op.send.data, parts.begin[index(r)]), parts.bytes[index(r)]});
  round.then = [to = op.recv, from = at(op.send.data, parts.begin[index(op.peer)])] {
    copy_bytes(to.data, from, to.bytes());
  };
}

// Whether there are fewer hosts than ranks, and each has a run of them.
bool neighbours_share_hosts(const Hosts& hosts, int ranks) {
  return hosts.count() < ranks && std::ranges::all_of(hosts.members, [](const std::vector<Rank>& members) {
           return members.back() - members.front() + 1 == static_cast<Rank>(members.size());
         });
}

// All ranks alike, by messages alone.
void flat(Schedule& schedule, const Group& group, const Hosts& hosts, const Operation& op, bool rank_order) {
  Circle everybody;
  everybody.me = group.rank;
  everybody.ranks.resize(group.world_rank.size());
  std::iota(everybody.ranks.begin(), everybody.ranks.end(), 0);
  MessageRounds rounds(schedule, everybody, rank_order);
  const Combination sum{op.send.data, op.recv.data, op.send.count, op.send.dtype, op.reduction};
  const std::size_t element = size_of(op.send.dtype);
  switch (op.pattern) {
    case Pattern::barrier: return rounds.barrier();
    case Pattern::broadcast: return rounds.broadcast(op.peer, op.recv.data, op.recv.bytes());
    case Pattern::reduce: return rounds.reduce(op.peer, sum);
    case Pattern::all_reduce: return rounds.all_reduce(sum);
    case Pattern::reduce_scatter: return rounds.reduce_scatter(sum, op.counts);
    case Pattern::gather: return gather(schedule, group, op);
    case Pattern::scatter: return scatter(schedule, group, op);
    case Pattern::all_gather: return rounds.all_gather(op.send.data, op.recv.data, Parts(op.counts, element));
    case Pattern::all_to_all:
      return rounds.all_to_all(op.send.data, Parts(op.counts, element), op.recv.data,
                               Parts(op.recv_counts, element));
    case Pattern::scan:
    case Pattern::exclusive_scan:
      if (neighbours_share_hosts(hosts, group.size()) && !needs_widening(op))
        return rounds.scan_along(sum, op.pattern == Pattern::scan);
      return rounds.scan(sum, op.pattern == Pattern::scan);
    default: return;
  }
}

bool is_scan(Pattern pattern) { return pattern == Pattern::scan || pattern == Pattern::exclusive_scan; }

bool is_reduction(Pattern pattern) {
  return pattern == Pattern::reduce || pattern == Pattern::all_reduce || pattern == Pattern::reduce_scatter;
}

}  // namespace

void copy_own_parts(Rank me, const Operation& exchange) {
  const auto next = [me](std::span<const Part> parts, std::size_t from) {
    while (from < parts.size() && parts[from].peer != me) ++from;
    return from;
  };
  for (const bool checked : {false, true}) {
    std::size_t send = next(exchange.sends, 0), receive = next(exchange.receives, 0);
    for (; send < exchange.sends.size() && receive < exchange.receives.size();
         send = next(exchange.sends, send + 1), receive = next(exchange.receives, receive + 1)) {
      const Buffer &from = exchange.sends[send].buffer, &to = exchange.receives[receive].buffer;
      if (from.bytes() != to.bytes()) break;
      if (checked) copy_bytes(to.data, from.data, to.bytes());
    }
    if (send < exchange.sends.size() || receive < exchange.receives.size())
      fail(ErrorCode::invalid_argument,
           "exchange: what this rank sends to itself is not what it receives from itself");
  }
}

ScheduleOptions schedule_options(const JobOptions& job) {
  const char* wish = std::getenv("SHOAL_REPRODUCIBLE");
  return {.reproducible = job.reproducible || (wish && *wish && std::strcmp(wish, "0") != 0)};
}

Schedule make_schedule(const Group& group, const Hosts& hosts, const Operation& operation,
                       const ScheduleOptions& options) {
  if (!is_collective(operation.pattern)) return messages(group.rank, operation);
  Schedule schedule;
  const bool in_order = is_reduction(operation.pattern) && (options.reproducible || hosts.count() == 1);
  const bool levels =
      hosts.count() < group.size() && hosts.count() > 1 && !in_order && !is_scan(operation.pattern);
  const auto build = [&](const Operation& op) {
    if (levels)
      two_level(schedule, group, hosts, op);
    else
      flat(schedule, group, hosts, op, in_order);
  };
  // Sums of sums would be rounded at each step.
  const bool in_steps = levels || (group.size() > few_ranks && !in_order);
  if (is_reduction(operation.pattern) && in_steps && needs_widening(operation))
    widened(schedule, group.rank, operation, build);
  else
    build(operation);
  return schedule;
}

}  // namespace shoal::comm
