// SPDX-License-Identifier: Apache-2.0
#include "comm/two_level.h"

#include <algorithm>

#include "comm/message_rounds.h"
#include "comm/parts.h"
#include "comm/reduce.h"

namespace shoal::comm {
namespace {

// A large all-reduce is cut into slices, one for each rank of a host, from here on.
constexpr std::size_t slices_bytes = std::size_t{64} << 10;

// An all-gather of more than this is not collected by leaders.
constexpr std::size_t pairs_bytes = std::size_t{64} << 10;

// Up to here a few ranks of a host use messages among themselves as well. In the steps of HostCollectives
// nobody is more than one call ahead of the others; whoever only sends a message goes on.
constexpr std::size_t by_messages_bytes = std::size_t{8} << 10;

class TwoLevel {
 public:
  TwoLevel(Schedule& schedule, const Group& group, const Hosts& hosts, const Operation& operation)
      : schedule_(schedule), group_(group), hosts_(hosts), op_(operation) {
    for (std::size_t host = 0; host < hosts.members.size(); ++host) {
      const std::vector<Rank>& members = hosts.members[host];
      const auto root =
          has_root(op_.pattern) ? std::find(members.begin(), members.end(), op_.peer) : members.end();
      leaders_.ranks.push_back(root == members.end() ? members.front() : op_.peer);
      if (root != members.end()) root_host_ = static_cast<int>(host);
    }
    leaders_.me = hosts.mine;
    const Rank leader = leaders_.at(hosts.mine);
    local_leader_ = static_cast<Rank>(std::find(here().begin(), here().end(), leader) - here().begin());
    leads_ = leader == group.rank;
    for (const std::vector<Rank>& ranks : hosts.members) few_ = few_ && ranks.size() <= few_ranks;
  }

  void build() {
    switch (op_.pattern) {
      case Pattern::barrier: return barrier();
      case Pattern::broadcast: return broadcast();
      case Pattern::reduce: return reduce();
      case Pattern::all_reduce: return all_reduce();
      case Pattern::reduce_scatter: return reduce_scatter();
      case Pattern::gather: return gather();
      case Pattern::all_gather: return all_gather();
      case Pattern::scatter: return scatter();
      default: return;
    }
  }

 private:
  const std::vector<Rank>& here() const { return hosts_.here(); }
  const std::vector<Rank>& members(int host) const { return hosts_.members[static_cast<std::size_t>(host)]; }
  MessageRounds between_leaders() { return MessageRounds(schedule_, leaders_, false); }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  using Steps = std::vector<HostStep>;
  static Steps step(Operation operation, std::vector<std::int64_t> counts = {}) {
    return {{std::move(operation), std::move(counts)}};
  }

  // Whether ranks of a host exchange messages, of so many bytes; the same on all ranks.
  bool by_messages(std::size_t bytes) const { return few_ && bytes <= by_messages_bytes; }
  template <class Each>
  void for_others_here(Each&& each) const {
    for (const Rank rank : here())
      if (rank != group_.rank) each(rank);
  }

  // Adds to a round: the leader's data goes to all ranks here.
  void spread(Round& round, const Buffer& data) const {
    if (!by_messages(data.bytes())) {
      round.host = step({.pattern = Pattern::broadcast, .peer = local_leader_, .send = data, .recv = data});
    } else if (leads_) {
      for_others_here([&](Rank rank) { round.sends.push_back({rank, data.data, data.bytes()}); });
    } else {
      round.receives = {{leaders_.at(hosts_.mine), data.data, data.bytes()}};
    }
  }

  // Adds a round in which the leader gets the sum of the ranks here.
  void sum_up(void* out) {
    Round& round = schedule_.add();
    const Buffer& in = op_.send;
    if (!by_messages(in.bytes())) {
      round.host = step({.pattern = Pattern::reduce,
                         .reduction = op_.reduction,
                         .peer = local_leader_,
                         .send = in,
                         .recv = {out, in.count, in.dtype}});
      return;
    }
    if (!leads_) {
      round.sends = {{leaders_.at(hosts_.mine), in.data, in.bytes()}};
      return;
    }
    std::vector<const void*> inputs;
    for (const Rank rank : here()) {
      inputs.push_back(rank == group_.rank ? in.data : schedule_.reserve(in.bytes()));
      if (rank != group_.rank) round.receives.push_back({rank, const_cast<void*>(inputs.back()), in.bytes()});
    }
    round.then = [inputs, out, in, reduction = op_.reduction] {
      combine(in.dtype, reduction, inputs, out, in.count);
    };
  }

  // Adds a round in which the leader gets the parts of the ranks here, one after the other.
  void collect(const Buffer& block) {
    Round& round = schedule_.add();
    if (!by_messages(block.bytes())) {
      round.host = step({.pattern = Pattern::gather, .peer = local_leader_, .send = op_.send, .recv = block},
                        counts_of(hosts_.mine));
    } else if (!leads_) {
      round.sends = {{leaders_.at(hosts_.mine), op_.send.data, op_.send.bytes()}};
    } else {
      std::byte* own = nullptr;
      for_parts(block, [&](Rank rank, std::byte* part, std::size_t bytes) {
        if (rank == group_.rank)
          own = part;
        else
          round.receives.push_back({rank, part, bytes});
      });
      round.then = [own, from = op_.send] { copy_bytes(own, from.data, from.bytes()); };
    }
  }

  // Adds a round in which each rank here gets its part of what the leader has.
  void distribute(const Buffer& block) {
    Round& round = schedule_.add();
    if (!by_messages(block.bytes())) {
      round.host = step({.pattern = Pattern::scatter, .peer = local_leader_, .send = block, .recv = op_.recv},
                        counts_of(hosts_.mine));
    } else if (!leads_) {
      round.receives = {{leaders_.at(hosts_.mine), op_.recv.data, op_.recv.bytes()}};
    } else {
      for_parts(block, [&](Rank rank, std::byte* part, std::size_t bytes) {
        if (rank == group_.rank)
          round.then = [part, to = op_.recv] { copy_bytes(to.data, part, to.bytes()); };
        else
          round.sends.push_back({rank, part, bytes});
      });
    }
  }

  // each(rank, place, bytes) for the parts of the ranks here, which fill `block`.
  template <class Each>
  void for_parts(const Buffer& block, Each&& each) const {
    std::byte* place = at(block.data, 0);
    for (const Rank rank : here()) {
      const std::size_t bytes = static_cast<std::size_t>(op_.counts[index(rank)]) * size_of(block.dtype);
      each(rank, place, bytes);
      place += bytes;
    }
  }

  // Of the members of a host.
  std::vector<std::int64_t> counts_of(int host) const {
    std::vector<std::int64_t> counts;
    for (const Rank rank : members(host)) counts.push_back(op_.counts[index(rank)]);
    return counts;
  }
  std::int64_t total_of(int host) const {
    std::int64_t total = 0;
    for (const Rank rank : members(host)) total += op_.counts[index(rank)];
    return total;
  }
  // Whether the members' parts lie one after the other in a buffer of all parts.
  bool is_run(int host) const {
    return members(host).back() - members(host).front() + 1 == static_cast<Rank>(members(host).size());
  }
  bool all_runs() const {
    for (int host = 0; host < hosts_.count(); ++host)
      if (!is_run(host)) return false;
    return true;
  }
  // Whether a host's parts travel as one message between its leader and the root. Collecting two costs as
  // much as it saves; one message to two spares the root a call.
  bool is_collected(int host, std::size_t element) const {
    const std::size_t few = op_.pattern == Pattern::gather ? 2 : 1;
    return members(host).size() > few &&
           static_cast<std::size_t>(total_of(host)) * element <= collected_bytes;
  }

  // Copies the parts of a host between a buffer of all parts and one that holds these alone.
  auto copy_parts(int host, const Parts& parts, void* all, void* these, bool out_of_all) const {
    return [ranks = members(host), parts, all, these, out_of_all] {
      std::size_t offset = 0;
      for (const Rank rank : ranks) {
        std::byte* const place = at(all, parts.begin[index(rank)]);
        std::byte* const packed = at(these, offset);
        copy_bytes(out_of_all ? packed : place, out_of_all ? place : packed, parts.bytes[index(rank)]);
        offset += parts.bytes[index(rank)];
      }
    };
  }

  void barrier() {
    if (by_messages(0)) return barrier_by_messages();
    schedule_.add().host = step({.pattern = Pattern::barrier});
    if (leads_) between_leaders().barrier();
    schedule_.add().host = step({.pattern = Pattern::barrier});
  }

  void barrier_by_messages() {
    Round& up = schedule_.add();
    if (!leads_) {
      up.sends = {{leaders_.at(hosts_.mine), nullptr, 0}};
      up.receives = {{leaders_.at(hosts_.mine), nullptr, 0}};
      return;
    }
    for_others_here([&](Rank rank) { up.receives.push_back({rank, nullptr, 0}); });
    between_leaders().barrier();
    Round& down = schedule_.add();
    for_others_here([&](Rank rank) { down.sends.push_back({rank, nullptr, 0}); });
  }

  void broadcast() {
    if (leads_)
      between_leaders().broadcast(root_host_, op_.recv.data, op_.recv.bytes());
    else
      schedule_.add();
    spread(schedule_.rounds.back(), op_.recv);
  }

  void reduce() {
    void* const partial = !leads_                   ? nullptr
                          : group_.rank == op_.peer ? op_.recv.data
                                                    : schedule_.reserve(op_.send.bytes());
    sum_up(partial);
    if (leads_)
      between_leaders().reduce(root_host_,
                               {partial, op_.recv.data, op_.send.count, op_.send.dtype, op_.reduction});
  }

  void all_reduce() {
    std::size_t slices = here().size();
    for (const std::vector<Rank>& ranks : hosts_.members) slices = std::min(slices, ranks.size());
    if (slices > 1 && op_.send.bytes() > slices_bytes) return all_reduce_slices(static_cast<int>(slices));
    const Combination all{op_.recv.data, op_.recv.data, op_.send.count, op_.send.dtype, op_.reduction};
    sum_up(op_.recv.data);
    if (leads_) between_leaders().all_reduce(all);
    spread(leads_ || !by_messages(op_.recv.bytes()) ? schedule_.add() : schedule_.rounds.back(), op_.recv);
  }

  // The first `slices` ranks of each host lead one slice each.
  void all_reduce_slices(int slices) {
    std::vector<std::int64_t> counts = even_counts(op_.send.count, slices);
    counts.resize(here().size());
    const std::int64_t mine = counts[index(hosts_.local)];
    const Buffer slice{schedule_.reserve(static_cast<std::size_t>(mine) * size_of(op_.send.dtype)), mine,
                       op_.send.dtype};
    schedule_.add().host = step(
        {.pattern = Pattern::reduce_scatter, .reduction = op_.reduction, .send = op_.send, .recv = slice},
        counts);
    if (hosts_.local < slices) {
      Circle circle{.ranks = {}, .me = hosts_.mine};
      for (const std::vector<Rank>& ranks : hosts_.members)
        circle.ranks.push_back(ranks[index(hosts_.local)]);
      MessageRounds(schedule_, circle, false)
          .all_reduce({slice.data, slice.data, mine, op_.send.dtype, op_.reduction});
    }
    schedule_.add().host = step({.pattern = Pattern::all_gather, .send = slice, .recv = op_.recv}, counts);
  }

  void reduce_scatter() {
    const std::size_t element = size_of(op_.send.dtype);
    const Parts parts(op_.counts, element);
    std::byte* const sums = leads_ ? schedule_.reserve(parts.total) : nullptr;
    sum_up(sums);
    Buffer block{nullptr, total_of(hosts_.mine), op_.send.dtype};
    if (leads_) {
      std::byte* by_host = sums;
      std::vector<std::int64_t> counts;
      for (int host = 0; host < hosts_.count(); ++host) counts.push_back(total_of(host));
      if (!all_runs()) {
        by_host = schedule_.reserve(parts.total);
        const Parts blocks(counts, element);
        for (int host = 0; host < hosts_.count(); ++host)
          schedule_.add().then = copy_parts(host, parts, sums, by_host + blocks.begin[index(host)], true);
      }
      block.data = schedule_.reserve(block.bytes());
      between_leaders().reduce_scatter({by_host, block.data, op_.send.count, op_.send.dtype, op_.reduction},
                                       counts);
    }
    distribute(block);
  }

  // Whether all hosts have the same number of ranks.
  bool is_even() const {
    return std::ranges::all_of(hosts_.members,
                               [&](const std::vector<Rank>& ranks) { return ranks.size() == here().size(); });
  }

  // Each rank exchanges its part with those that have its place on other hosts; what has come to a host is
  // then spread within it, straight between the places in `recv`.
  void all_gather_pairs(const Parts& parts) {
    const auto buffer = [&](Rank rank) {
      return Buffer{at(op_.recv.data, parts.begin[index(rank)]), op_.counts[index(rank)], op_.send.dtype};
    };
    const auto spread_from = [&](Round& round, int host) {
      for (std::size_t local = 0; local < here().size(); ++local) {
        const Buffer part = buffer(members(host)[local]);
        round.host.push_back(
            {{.pattern = Pattern::broadcast, .peer = static_cast<Rank>(local), .send = part, .recv = part},
             {}});
      }
    };
    schedule_.add().then = [to = buffer(group_.rank), from = op_.send] {
      copy_bytes(to.data, from.data, to.bytes());
    };
    Round& round = schedule_.add();
    for (int host = 0; host < hosts_.count(); ++host) {
      const Rank peer = members(host)[index(hosts_.local)];
      if (host == hosts_.mine) continue;
      round.sends.push_back({peer, op_.send.data, op_.send.bytes()});
      round.receives.push_back({peer, buffer(peer).data, parts.bytes[index(peer)]});
    }
    spread_from(round, hosts_.mine);
    Round& last = schedule_.add();
    for (int host = 0; host < hosts_.count(); ++host)
      if (host != hosts_.mine) spread_from(last, host);
  }

  void all_gather() {
    const std::size_t element = size_of(op_.send.dtype);
    std::vector<std::int64_t> counts;
    for (int host = 0; host < hosts_.count(); ++host) counts.push_back(total_of(host));
    const Parts parts(op_.counts, element), blocks(counts, element);
    if (is_even() && parts.total > pairs_bytes) return all_gather_pairs(parts);
    std::byte* by_host = nullptr;
    if (leads_) by_host = all_runs() ? at(op_.recv.data, 0) : schedule_.reserve(blocks.total);
    const Buffer block{leads_ ? by_host + blocks.begin[index(hosts_.mine)] : nullptr, total_of(hosts_.mine),
                       op_.send.dtype};
    collect(block);
    if (leads_) {
      between_leaders().all_gather(block.data, by_host, blocks);
      for (int host = 0; !all_runs() && host < hosts_.count(); ++host)
        schedule_.add().then =
            copy_parts(host, parts, op_.recv.data, by_host + blocks.begin[index(host)], false);
    }
    spread(schedule_.add(), op_.recv);
  }

  void gather() {
    const std::size_t element = size_of(op_.send.dtype);
    if (hosts_.mine == root_host_) return group_.rank == op_.peer ? gather_at_root() : give_to_root();
    if (!is_collected(hosts_.mine, element)) {
      schedule_.add().sends = {{op_.peer, op_.send.data, op_.send.bytes()}};
      return;
    }
    Buffer block{nullptr, total_of(hosts_.mine), op_.send.dtype};
    if (leads_) block.data = schedule_.reserve(block.bytes());
    collect(block);
    if (leads_) schedule_.add().sends = {{op_.peer, block.data, block.bytes()}};
  }

  // Whether the root's host uses its memory in a gather or scatter: not for small data (see above), nor where
  // that would cost one more copy of large data.
  bool is_shared_at_root(std::size_t element) const {
    const std::size_t bytes = static_cast<std::size_t>(total_of(root_host_)) * element;
    return !by_messages(bytes) && (is_run(root_host_) || bytes <= collected_bytes);
  }

  void give_to_root() {
    if (is_shared_at_root(size_of(op_.send.dtype)))
      schedule_.add().host =
          step({.pattern = Pattern::gather, .peer = local_leader_, .send = op_.send}, counts_of(root_host_));
    else
      schedule_.add().sends = {{op_.peer, op_.send.data, op_.send.bytes()}};
  }

  void gather_at_root() {
    const std::size_t element = size_of(op_.send.dtype);
    const Parts parts(op_.counts, element);
    std::vector<std::function<void()>> copies;
    Round round;
    for (int host = 0; host < hosts_.count(); ++host) {
      const bool own = host == root_host_;
      std::byte* place = at(op_.recv.data, parts.begin[index(members(host).front())]);
      const Buffer block{place, total_of(host), op_.send.dtype};
      if (own ? is_shared_at_root(element) : is_collected(host, element)) {
        if (!is_run(host)) {
          place = schedule_.reserve(block.bytes());
          copies.emplace_back(copy_parts(host, parts, op_.recv.data, place, false));
        }
        if (own)
          round.host = step({.pattern = Pattern::gather,
                             .peer = local_leader_,
                             .send = op_.send,
                             .recv = {place, block.count, block.dtype}},
                            counts_of(host));
        else
          round.receives.push_back({leaders_.at(host), place, block.bytes()});
        continue;
      }
      for (const Rank rank : members(host)) {
        std::byte* const part = at(op_.recv.data, parts.begin[index(rank)]);
        if (rank == group_.rank)
          copies.emplace_back([part, from = op_.send] { copy_bytes(part, from.data, from.bytes()); });
        else
          round.receives.push_back({rank, part, parts.bytes[index(rank)]});
      }
    }
    round.then = [copies = std::move(copies)] {
      for (const auto& copy : copies) copy();
    };
    schedule_.rounds.push_back(std::move(round));
  }

  void scatter() {
    const std::size_t element = size_of(op_.recv.dtype);
    if (group_.rank == op_.peer) return scatter_from_root();
    const bool at_root = hosts_.mine == root_host_;
    if (at_root ? !is_shared_at_root(element) : !is_collected(hosts_.mine, element)) {
      schedule_.add().receives = {{op_.peer, op_.recv.data, op_.recv.bytes()}};
      return;
    }
    Buffer block{nullptr, total_of(hosts_.mine), op_.recv.dtype};
    if (leads_) {
      block.data = schedule_.reserve(block.bytes());
      schedule_.add().receives = {{op_.peer, block.data, block.bytes()}};
    }
    distribute(block);
  }

  void scatter_from_root() {
    const std::size_t element = size_of(op_.recv.dtype);
    const Parts parts(op_.counts, element);
    Round& first = schedule_.add();  // copies what has to be collected
    std::vector<std::function<void()>> copies;
    Round round;
    for (int host = 0; host < hosts_.count(); ++host) {
      const bool own = host == root_host_;
      std::byte* place = at(op_.send.data, parts.begin[index(members(host).front())]);
      const Buffer block{place, total_of(host), op_.recv.dtype};
      if (own ? is_shared_at_root(element) : is_collected(host, element)) {
        if (!is_run(host)) {
          place = schedule_.reserve(block.bytes());
          copies.emplace_back(copy_parts(host, parts, op_.send.data, place, true));
        }
        if (own)
          round.host = step({.pattern = Pattern::scatter,
                             .peer = local_leader_,
                             .send = {place, block.count, block.dtype},
                             .recv = op_.recv},
                            counts_of(host));
        else
          round.sends.push_back({leaders_.at(host), place, block.bytes()});
        continue;
      }
      for (const Rank rank : members(host)) {
        std::byte* const part = at(op_.send.data, parts.begin[index(rank)]);
        if (rank == group_.rank)
          copies.emplace_back([part, to = op_.recv] { copy_bytes(to.data, part, to.bytes()); });
        else
          round.sends.push_back({rank, part, parts.bytes[index(rank)]});
      }
    }
    first.then = [copies = std::move(copies)] {
      for (const auto& copy : copies) copy();
    };
    schedule_.rounds.push_back(std::move(round));
  }

  Schedule& schedule_;
  const Group& group_;
  const Hosts& hosts_;
  const Operation& op_;
  Circle leaders_;  // by host
  int root_host_ = 0;
  Rank local_leader_ = 0;
  bool leads_ = false;
  bool few_ = true;  // ranks on each host
};

}  // namespace

void two_level(Schedule& schedule, const Group& group, const Hosts& hosts, const Operation& operation) {
  if (operation.pattern == Pattern::all_to_all)
    two_level_all_to_all(schedule, group, hosts, operation);
  else
    TwoLevel(schedule, group, hosts, operation).build();
  schedule.in_turn = std::ranges::any_of(schedule.rounds, [](const Round& r) { return !r.host.empty(); });
}

}  // namespace shoal::comm
