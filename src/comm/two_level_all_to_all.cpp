// SPDX-License-Identifier: Apache-2.0
// A rank knows what it sends and receives itself. So the ranks of a host tell each other first; then both
// sides know how much goes from a host to a rank of another, and choose alike: one message for all of it, or
// one from each rank. The one message is sent by the rank that has the receiver's place on the sending host,
// so all ranks of a host share the work, and what arrives is where it belongs. Very small data is told along
// with the counts. Within a host parts go straight from rank to rank. Large parts go one at a time, each
// rank's to another: all at once would drive each other out of the caches.
#include <algorithm>
#include <memory>
#include <numeric>

#include "comm/parts.h"
#include "comm/two_level.h"

namespace shoal::comm {
namespace {

constexpr std::size_t inline_bytes = 256;  // of data, beside a rank's counts
// Larger parts go one at a time.
constexpr std::size_t at_once_bytes = collected_bytes;

struct State {
  State(const Group& whole, const Hosts& on_hosts, const Operation& operation)
      : group(whole),
        hosts(on_hosts),
        sent(operation.counts, size_of(operation.send.dtype)),
        received(operation.recv_counts, size_of(operation.send.dtype)),
        in(static_cast<std::byte*>(operation.send.data)),
        out(static_cast<std::byte*>(operation.recv.data)),
        collected(size()) {
    for (const std::size_t bytes : sent.bytes) mine.push_back(static_cast<std::int64_t>(bytes));
    mine.resize(block());
    for (int host = 0; host < hosts.count(); ++host)
      pays.push_back(host != hosts.mine && locals() * hosts.members[index(host)].size() > 1);
    add_inline();
    everybody.resize(mine.size() * locals());
  }

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  std::size_t size() const { return group.world_rank.size(); }
  std::size_t locals() const { return hosts.here().size(); }
  std::size_t block() const { return size() + inline_bytes / sizeof(std::int64_t); }  // words a rank
  // Bytes that my host's rank sends to `to`.
  std::size_t sends(std::size_t local, Rank to) const {
    return static_cast<std::size_t>(everybody[local * block() + index(to)]);
  }
  const std::byte* inline_data(std::size_t local) const {
    return reinterpret_cast<const std::byte*>(&everybody[local * block() + size()]);
  }
  // Calls each(host, rank, lane) for the ranks of hosts to which messages may be collected; the lane is the
  // place here of the rank that then sends it.
  template <class Each>
  void for_paying(Each&& each) const {
    for (std::size_t host = 0; host < hosts.members.size(); ++host)
      for (std::size_t place = 0; pays[host] && place < hosts.members[host].size(); ++place)
        each(host, hosts.members[host][place], place % locals());
  }
  bool is_mine(std::size_t lane) const { return lane == index(hosts.local); }

  void add_inline();
  void plan_near(Round& round, bool small);
  void plan_far(Round& round) const;
  void plan_steps(Round* rounds) const;
  void plan_first(Round& round);
  void plan_lanes(Round& round);
  void take_inline();
  void plan_messages(Round& round);
  void unpack() const;

  Group group;
  Hosts hosts;
  Parts sent, received;
  std::byte* in;
  std::byte* out;
  std::vector<std::int64_t> mine;                 // bytes sent to each rank, and small data
  std::vector<std::int64_t> everybody;            // the same of all ranks of this host
  std::vector<bool> pays;                         // by host: whether messages can be collected at all
  std::vector<bool> collected;                    // by rank: whether it gets one message from this host
  std::vector<bool> collected_in;                 // by host: whether this rank gets one message from it
  std::vector<std::int64_t> to_lane, from_local;  // bytes to each lane, and to this one from each rank here
  std::vector<std::byte> packed, gathered, to_send, arrived;
};

void State::add_inline() {
  std::size_t bytes = 0;
  for_paying([&](std::size_t, Rank rank, std::size_t) { bytes += sent.bytes[index(rank)]; });
  if (bytes > inline_bytes) return;
  std::byte* to = reinterpret_cast<std::byte*>(&mine[size()]);
  for_paying([&](std::size_t, Rank rank, std::size_t) {
    copy_bytes(to, in + sent.begin[index(rank)], sent.bytes[index(rank)]);
    to += sent.bytes[index(rank)];
  });
}

// Straight messages of which nothing could be collected: small ones go along with the counts, larger ones
// after those to other hosts, which need the processor as well.
void State::plan_near(Round& round, bool small) {
  const auto belongs = [&](std::size_t bytes) {
    return bytes <= at_once_bytes && (bytes <= inline_bytes) == small;
  };
  for (int host = 0; host < hosts.count(); ++host)
    for (const Rank rank : hosts.members[index(host)]) {
      if (rank == group.rank || pays[index(host)]) continue;
      const std::size_t bytes_out = sent.bytes[index(rank)], bytes_in = received.bytes[index(rank)];
      if (belongs(bytes_out)) round.sends.push_back({rank, in + sent.begin[index(rank)], bytes_out});
      if (belongs(bytes_in)) round.receives.push_back({rank, out + received.begin[index(rank)], bytes_in});
    }
}

// Straight messages that are not collected.
void State::plan_far(Round& round) const {
  for (std::size_t host = 0; host < hosts.members.size(); ++host)
    for (const Rank rank : hosts.members[host]) {
      if (!pays[host]) continue;
      const std::size_t bytes_out = sent.bytes[index(rank)], bytes_in = received.bytes[index(rank)];
      if (!collected[index(rank)] && bytes_out <= at_once_bytes)
        round.sends.push_back({rank, in + sent.begin[index(rank)], bytes_out});
      if (!collected_in[host] && bytes_in <= at_once_bytes)
        round.receives.push_back({rank, out + received.begin[index(rank)], bytes_in});
    }
}

// The large ones of all kinds: in step s to the rank s places above, from the one s places below. (They are
// too large to be collected.)
void State::plan_steps(Round* rounds) const {
  const std::size_t n = size(), me = index(group.rank);
  for (std::size_t step = 1; step < n; ++step) {
    const std::size_t to = (me + step) % n, from = (me + n - step) % n;
    Round& round = rounds[step - 1];
    if (sent.bytes[to] > at_once_bytes)
      round.sends.push_back({static_cast<Rank>(to), in + sent.begin[to], sent.bytes[to]});
    if (received.bytes[from] > at_once_bytes)
      round.receives.push_back({static_cast<Rank>(from), out + received.begin[from], received.bytes[from]});
  }
}

// Decides what is collected, and brings that to the lanes.
void State::plan_first(Round& round) {
  to_lane.assign(locals(), 0);
  from_local.assign(locals(), 0);
  std::vector<std::size_t> paying(locals());  // bytes of each rank here, to all that may be collected
  bool all = true;
  for_paying([&](std::size_t, Rank rank, std::size_t lane) {
    std::size_t bytes = 0;
    for (std::size_t local = 0; local < locals(); ++local) bytes += sends(local, rank);
    collected[index(rank)] = bytes <= collected_bytes;
    all = all && collected[index(rank)];
    for (std::size_t local = 0; local < locals(); ++local) {
      paying[local] += sends(local, rank);
      if (collected[index(rank)] && is_mine(lane))
        from_local[local] += static_cast<std::int64_t>(sends(local, rank));
    }
    if (collected[index(rank)]) to_lane[lane] += static_cast<std::int64_t>(sent.bytes[index(rank)]);
  });
  for (std::size_t host = 0; host < hosts.members.size(); ++host) {
    std::size_t bytes = 0;
    for (const Rank rank : hosts.members[host]) bytes += received.bytes[index(rank)];
    collected_in.push_back(pays[host] && bytes <= collected_bytes);
  }
  plan_far(round);
  gathered.resize(
      static_cast<std::size_t>(std::accumulate(from_local.begin(), from_local.end(), std::int64_t{0})));
  if (all && *std::ranges::max_element(paying) <= inline_bytes)
    take_inline();
  else
    plan_lanes(round);
}

// What the ranks here have told along with their counts, by sending rank.
void State::take_inline() {
  std::byte* to = gathered.data();
  for (std::size_t local = 0; local < locals(); ++local) {
    const std::byte* from = inline_data(local);
    for_paying([&](std::size_t, Rank rank, std::size_t lane) {
      const std::size_t bytes = sends(local, rank);
      if (is_mine(lane)) {
        copy_bytes(to, from, bytes);
        to += bytes;
      }
      from += bytes;
    });
  }
}

// The same by a step within the host.
void State::plan_lanes(Round& round) {
  const Parts lanes(to_lane, 1);
  packed.resize(lanes.total);
  std::vector<std::size_t> place = lanes.begin;
  for_paying([&](std::size_t, Rank rank, std::size_t lane) {
    if (!collected[index(rank)]) return;
    copy_bytes(packed.data() + place[lane], in + sent.begin[index(rank)], sent.bytes[index(rank)]);
    place[lane] += sent.bytes[index(rank)];
  });
  round.host = {{{.pattern = Pattern::all_to_all,
                  .send = {packed.data(), static_cast<std::int64_t>(packed.size()), DType::uint8},
                  .recv = {gathered.data(), static_cast<std::int64_t>(gathered.size()), DType::uint8}},
                 to_lane,
                 from_local}};
}

// From lane to lane: to each rank the parts of the ranks here, in order.
void State::plan_messages(Round& round) {
  plan_near(round, false);
  std::vector<std::size_t> place = Parts(from_local, 1).begin;  // how far each rank's part has been read
  to_send.reserve(gathered.size());
  for_paying([&](std::size_t, Rank rank, std::size_t lane) {
    if (!collected[index(rank)] || !is_mine(lane)) return;
    const std::size_t begin = to_send.size();
    for (std::size_t local = 0; local < locals(); ++local) {
      const auto from = gathered.begin() + static_cast<std::ptrdiff_t>(place[local]);
      to_send.insert(to_send.end(), from, from + static_cast<std::ptrdiff_t>(sends(local, rank)));
      place[local] += sends(local, rank);
    }
    round.sends.push_back({rank, to_send.data() + begin, to_send.size() - begin});
  });
  std::size_t arriving = 0, at = 0;
  for (std::size_t host = 0; host < hosts.members.size(); ++host)
    for (const Rank rank : hosts.members[host])
      arriving += collected_in[host] ? received.bytes[index(rank)] : 0;
  arrived.resize(arriving);
  for (std::size_t host = 0; host < hosts.members.size(); ++host) {
    if (!collected_in[host]) continue;
    const std::vector<Rank>& members = hosts.members[host];
    const std::size_t begin = at;
    for (const Rank rank : members) at += received.bytes[index(rank)];
    round.receives.push_back(
        {members[index(hosts.local) % members.size()], arrived.data() + begin, at - begin});
  }
}

void State::unpack() const {
  const std::byte* from = arrived.data();
  for (std::size_t host = 0; host < hosts.members.size(); ++host)
    for (const Rank rank : hosts.members[host]) {
      if (!collected_in[host]) continue;
      copy_bytes(out + received.begin[index(rank)], from, received.bytes[index(rank)]);
      from += received.bytes[index(rank)];
    }
  copy_bytes(out + received.begin[index(group.rank)], in + sent.begin[index(group.rank)],
             sent.bytes[index(group.rank)]);
}

}  // namespace

void two_level_all_to_all(Schedule& schedule, const Group& group, const Hosts& hosts,
                          const Operation& operation) {
  const auto state = std::make_shared<State>(group, hosts, operation);
  schedule.once = true;
  schedule.rounds.resize(3 + state->size() - 1);
  Round* const rounds = schedule.rounds.data();  // stays, whoever owns the schedule: none is added
  rounds[0].host = {
      {{.pattern = Pattern::all_gather,
        .send = {state->mine.data(), static_cast<std::int64_t>(state->mine.size()), DType::int64},
        .recv = {state->everybody.data(), static_cast<std::int64_t>(state->everybody.size()), DType::int64}},
       std::vector<std::int64_t>(hosts.here().size(), static_cast<std::int64_t>(state->mine.size())),
       {}}};
  state->plan_near(rounds[0], true);
  state->plan_steps(rounds + 3);
  rounds[0].then = [state, rounds] { state->plan_first(rounds[1]); };
  rounds[1].then = [state, rounds] { state->plan_messages(rounds[2]); };
  schedule.rounds.back().then = [state] { state->unpack(); };
}

}  // namespace shoal::comm
