// SPDX-License-Identifier: Apache-2.0
// A rank knows what it sends and receives itself. So the ranks of a host tell each other first; then both
// sides of a pair of hosts know how much goes between them, and choose alike: one message for all of it, or
// one for each pair of ranks. Very small data is told along with the counts. Within a host parts go straight
// from rank to rank.
#include <algorithm>
#include <memory>
#include <numeric>

#include "comm/parts.h"
#include "comm/two_level.h"

namespace shoal::comm {
namespace {

constexpr std::size_t inline_bytes = 256;  // of data, beside a rank's counts

struct State {
  State(const Group& whole, const Hosts& on_hosts, const Operation& operation)
      : group(whole),
        hosts(on_hosts),
        sent(operation.counts, size_of(operation.send.dtype)),
        received(operation.recv_counts, size_of(operation.send.dtype)),
        in(static_cast<std::byte*>(operation.send.data)),
        out(static_cast<std::byte*>(operation.recv.data)) {
    for (const Parts* parts : {&sent, &received})
      for (const std::size_t bytes : parts->bytes) mine.push_back(static_cast<std::int64_t>(bytes));
    mine.resize(block());
    for (int host = 0; host < hosts.count(); ++host)
      pays.push_back(host != hosts.mine && locals() * hosts.members[index(host)].size() > 1);
    add_inline();
    everybody.resize(mine.size() * locals());
  }

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  std::size_t size() const { return group.world_rank.size(); }
  std::size_t locals() const { return hosts.here().size(); }
  bool leads() const { return hosts.local == 0; }
  std::size_t block() const { return 2 * size() + inline_bytes / sizeof(std::int64_t); }  // words a rank
  // Bytes that my host's rank sends to `to`, or receives from `from`.
  std::size_t sends(std::size_t local, Rank to) const {
    return static_cast<std::size_t>(everybody[local * block() + index(to)]);
  }
  std::size_t receives(std::size_t local, Rank from) const {
    return static_cast<std::size_t>(everybody[local * block() + size() + index(from)]);
  }

  std::size_t sends_in_all(std::size_t local) const;
  void add_inline();
  void pack(const std::vector<bool>& collected);
  void plan_near(Round& round, bool small);
  void decide();
  void plan_first(Round& round);
  void plan_messages(Round& round);
  void plan_last(Round& round);
  void unpack() const;

  Group group;
  Hosts hosts;
  Parts sent, received;
  std::byte* in;
  std::byte* out;
  std::vector<std::int64_t> mine;       // bytes sent to each rank, received from each, and small data
  std::vector<std::int64_t> everybody;  // the same of all ranks of this host
  std::vector<bool> pays;               // by host: whether messages can be collected at all
  std::vector<bool> collected_out, collected_in;  // by host
  std::vector<std::size_t> out_bytes, in_bytes;   // to and from each host
  std::vector<std::byte> packed, gathered, to_send, arrived, to_scatter, unpacked;
};

// Calls each(host, rank) for the ranks of all hosts whose messages are collected.
template <class Each>
void for_collected(const Hosts& hosts, const std::vector<bool>& collected, Each&& each) {
  for (std::size_t host = 0; host < hosts.members.size(); ++host)
    if (collected[host])
      for (const Rank rank : hosts.members[host]) each(host, rank);
}

// What goes to the ranks of those hosts, by host, then by receiving rank.
void State::pack(const std::vector<bool>& collected) {
  packed.clear();
  for_collected(hosts, collected, [&](std::size_t, Rank rank) {
    packed.insert(packed.end(), in + sent.begin[index(rank)],
                  in + sent.begin[index(rank)] + sent.bytes[index(rank)]);
  });
}

void State::add_inline() {
  std::size_t bytes = 0;
  for_collected(hosts, pays, [&](std::size_t, Rank rank) { bytes += sent.bytes[index(rank)]; });
  if (bytes > inline_bytes) return;
  pack(pays);
  copy_bytes(&mine[2 * size()], packed.data(), packed.size());
}

std::size_t State::sends_in_all(std::size_t local) const {
  std::size_t bytes = 0;
  for_collected(hosts, collected_out, [&](std::size_t, Rank rank) { bytes += sends(local, rank); });
  return bytes;
}

// Straight messages of which nothing could be collected: small ones go along with the counts, large ones
// after those to other hosts, which need the processor as well.
void State::plan_near(Round& round, bool small) {
  const auto belongs = [&](std::size_t bytes) { return (bytes <= inline_bytes) == small; };
  for (int host = 0; host < hosts.count(); ++host)
    for (const Rank rank : hosts.members[index(host)]) {
      if (rank == group.rank || pays[index(host)]) continue;
      const std::size_t bytes_out = sent.bytes[index(rank)], bytes_in = received.bytes[index(rank)];
      if (belongs(bytes_out)) round.sends.push_back({rank, in + sent.begin[index(rank)], bytes_out});
      if (belongs(bytes_in)) round.receives.push_back({rank, out + received.begin[index(rank)], bytes_in});
    }
}

void State::decide() {
  for (int host = 0; host < hosts.count(); ++host) {
    std::size_t bytes_out = 0, bytes_in = 0;
    for (const Rank rank : hosts.members[index(host)])
      for (std::size_t local = 0; local < locals(); ++local) {
        bytes_out += sends(local, rank);
        bytes_in += receives(local, rank);
      }
    out_bytes.push_back(bytes_out);
    in_bytes.push_back(bytes_in);
    collected_out.push_back(pays[index(host)] && bytes_out <= collected_bytes);
    collected_in.push_back(pays[index(host)] && bytes_in <= collected_bytes);
  }
}

// Straight messages, and to the leader what it is to collect.
void State::plan_first(Round& round) {
  for (int host = 0; host < hosts.count(); ++host)
    for (const Rank rank : hosts.members[index(host)]) {
      if (!pays[index(host)]) continue;
      if (!collected_out[index(host)])
        round.sends.push_back({rank, in + sent.begin[index(rank)], sent.bytes[index(rank)]});
      if (!collected_in[index(host)])
        round.receives.push_back({rank, out + received.begin[index(rank)], received.bytes[index(rank)]});
    }
  std::vector<std::int64_t> counts;
  for (std::size_t local = 0; local < locals(); ++local)
    counts.push_back(static_cast<std::int64_t>(sends_in_all(local)));
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (leads()) gathered.resize(static_cast<std::size_t>(total));
  const bool all_inline =
      collected_out == pays && *std::ranges::max_element(counts) <= std::int64_t{inline_bytes};
  if (all_inline && leads()) {
    std::size_t to = 0;
    for (std::size_t local = 0; local < locals(); ++local) {
      copy_bytes(gathered.data() + to, &everybody[local * block() + 2 * size()],
                 static_cast<std::size_t>(counts[local]));
      to += static_cast<std::size_t>(counts[local]);
    }
  }
  if (all_inline) return;
  pack(collected_out);
  round.host = {{{.pattern = Pattern::gather,
                  .peer = 0,
                  .send = {packed.data(), static_cast<std::int64_t>(packed.size()), DType::uint8},
                  .recv = {gathered.data(), total, DType::uint8}},
                 counts}};
}

// Between leaders: for each pair of hosts the parts of each sending rank in turn.
void State::plan_messages(Round& round) {
  plan_near(round, false);
  if (!leads()) return;
  std::vector<std::size_t> at_local(locals());  // how far each rank's part of `gathered` has been read
  std::size_t offset = 0;
  for (std::size_t local = 0; local < locals(); ++local) {
    at_local[local] = offset;
    offset += sends_in_all(local);
  }
  to_send.reserve(gathered.size());
  std::size_t arriving = 0;
  for (std::size_t host = 0; host < hosts.members.size(); ++host)
    if (collected_in[host]) arriving += in_bytes[host];
  arrived.resize(arriving);
  arriving = 0;
  for (std::size_t host = 0; host < hosts.members.size(); ++host) {
    const Rank leader = hosts.members[host].front();
    if (collected_out[host]) {
      round.sends.push_back({leader, to_send.data() + to_send.size(), out_bytes[host]});
      for (std::size_t local = 0; local < locals(); ++local)
        for (const Rank rank : hosts.members[host]) {
          const auto begin = gathered.begin() + static_cast<std::ptrdiff_t>(at_local[local]);
          to_send.insert(to_send.end(), begin, begin + static_cast<std::ptrdiff_t>(sends(local, rank)));
          at_local[local] += sends(local, rank);
        }
    }
    if (collected_in[host]) {
      round.receives.push_back({leader, arrived.data() + arriving, in_bytes[host]});
      arriving += in_bytes[host];
    }
  }
}

// From the leader to each rank: by sending rank.
void State::plan_last(Round& round) {
  std::vector<std::int64_t> counts(locals());
  for (std::size_t local = 0; local < locals(); ++local)
    for_collected(hosts, collected_in, [&](std::size_t, Rank rank) {
      counts[local] += static_cast<std::int64_t>(receives(local, rank));
    });
  if (leads()) {
    to_scatter.resize(arrived.size());
    const Parts parts(counts, 1);
    std::vector<std::size_t> place = parts.begin;
    std::size_t from = 0;
    for_collected(hosts, collected_in, [&](std::size_t, Rank rank) {
      for (std::size_t local = 0; local < locals(); ++local) {
        const std::size_t bytes = receives(local, rank);
        copy_bytes(to_scatter.data() + place[local], arrived.data() + from, bytes);
        place[local] += bytes;
        from += bytes;
      }
    });
  }
  unpacked.resize(static_cast<std::size_t>(counts[index(hosts.local)]));
  round.host = {{{.pattern = Pattern::scatter,
                  .peer = 0,
                  .send = {to_scatter.data(), static_cast<std::int64_t>(to_scatter.size()), DType::uint8},
                  .recv = {unpacked.data(), counts[index(hosts.local)], DType::uint8}},
                 counts}};
}

void State::unpack() const {
  std::size_t from = 0;
  for_collected(hosts, collected_in, [&](std::size_t, Rank rank) {
    copy_bytes(out + received.begin[index(rank)], unpacked.data() + from, received.bytes[index(rank)]);
    from += received.bytes[index(rank)];
  });
  copy_bytes(out + received.begin[index(group.rank)], in + sent.begin[index(group.rank)],
             sent.bytes[index(group.rank)]);
}

}  // namespace

void two_level_all_to_all(Schedule& schedule, const Group& group, const Hosts& hosts,
                          const Operation& operation) {
  const auto state = std::make_shared<State>(group, hosts, operation);
  schedule.rounds.resize(4);
  Round* const rounds = schedule.rounds.data();  // stays, whoever owns the schedule: none is added
  rounds[0].host = {
      {{.pattern = Pattern::all_gather,
        .send = {state->mine.data(), static_cast<std::int64_t>(state->mine.size()), DType::int64},
        .recv = {state->everybody.data(), static_cast<std::int64_t>(state->everybody.size()), DType::int64}},
       std::vector<std::int64_t>(hosts.here().size(), static_cast<std::int64_t>(state->mine.size()))}};
  state->plan_near(rounds[0], true);
  rounds[0].then = [state, rounds] {
    state->decide();
    state->plan_first(rounds[1]);
  };
  rounds[1].then = [state, rounds] { state->plan_messages(rounds[2]); };
  rounds[2].then = [state, rounds] { state->plan_last(rounds[3]); };
  rounds[3].then = [state] { state->unpack(); };
}

}  // namespace shoal::comm
