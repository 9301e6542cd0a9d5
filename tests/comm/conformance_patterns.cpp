// SPDX-License-Identifier: Apache-2.0
// Patterns with roots, unequal parts, prefixes and neighbours; each blocking and started.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "comm/conformance.h"
#include "comm/conformance_support.h"
#include "comm/many_communicators.h"
#include "shoal/base/error.h"

namespace shoal::comm::conformance {
namespace {

using Counts = std::vector<std::int64_t>;

// Rank r's share: r * scale elements, and 1 more when r is odd; rank 0 has none.
std::size_t share(Rank r, std::size_t scale) {
  return static_cast<std::size_t>(r) * scale + static_cast<std::size_t>(r % 2);
}
Counts shares(int ranks, std::size_t scale) {
  Counts counts;
  for (Rank r = 0; r < ranks; ++r) counts.push_back(static_cast<std::int64_t>(share(r, scale)));
  return counts;
}
std::size_t total(const Counts& counts) {
  return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
}

// Both forms of a call must do the same.
enum class Form { blocking, async };
constexpr std::array forms = {Form::blocking, Form::async};

template <class T>
void reduce_case(Communicator& comm) {
  for (Rank root = 0; root < comm.size(); ++root)
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{20'011}})
      for (const Form form : forms) {
        const std::vector<T> mine = values<T>(comm.rank(), n);
        std::vector<T> out(comm.rank() == root ? n : 0);
        if (form == Form::blocking)
          comm.reduce(mine, out, Reduction::sum, root);
        else
          comm.reduce_async(mine, out, Reduction::sum, root).wait();
        for (std::size_t i = 0; i < out.size(); ++i)
          expect_equal(out[i], from_double<T>(reduced(Reduction::sum, comm.size(), i)), "element {}", i);
        if (comm.rank() != root) expect(mine == values<T>(comm.rank(), n), "input unchanged");
      }
}

template <class T>
void reduce_scatter_case(Communicator& comm) {
  for (const std::size_t scale : {std::size_t{0}, std::size_t{3}, std::size_t{4'001}})
    for (const Form form : forms) {
      const Counts counts = shares(comm.size(), scale);
      const std::vector<T> in = values<T>(comm.rank(), total(counts));
      std::vector<T> out(share(comm.rank(), scale));
      if (form == Form::blocking)
        comm.reduce_scatter(in, out, counts, Reduction::max);
      else
        comm.reduce_scatter_async(in, out, counts, Reduction::max).wait();
      std::size_t begin = 0;
      for (Rank r = 0; r < comm.rank(); ++r) begin += share(r, scale);
      for (std::size_t i = 0; i < out.size(); ++i)
        expect_equal(out[i], from_double<T>(reduced(Reduction::max, comm.size(), begin + i)), "element {}",
                     i);
      expect(true, "");
    }
}

template <class T>
void gather_scatter_case(Communicator& comm) {
  for (Rank root = 0; root < comm.size(); ++root)
    for (const Form form : forms) {
      const std::size_t scale = 1'003;
      const Counts counts = shares(comm.size(), scale);
      const std::vector<T> mine = values<T>(comm.rank(), share(comm.rank(), scale));
      std::vector<T> all(comm.rank() == root ? total(counts) : 0);
      std::vector<T> back(mine.size());
      if (form == Form::blocking) {
        comm.gather(mine, all, counts, root);
        comm.scatter(all, back, counts, root);
      } else {
        comm.gather_async(mine, all, counts, root).wait();
        comm.scatter_async(all, back, counts, root).wait();
      }
      std::size_t at = 0;
      for (Rank r = 0; r < comm.size() && !all.empty(); ++r)
        for (std::size_t i = 0; i < share(r, scale); ++i, ++at)
          expect_equal(all[at], value<T>(r, i), "gather, rank {} element {}", r, i);
      expect(back == mine, "scatter undoes gather");
    }
}

// Rank s sends (s + 2 d) mod 5 elements to rank d: some pairs none.
template <class T>
void all_to_all_case(Communicator& comm) {
  const auto length = [](Rank from, Rank to, std::size_t scale) {
    return static_cast<std::int64_t>(static_cast<std::size_t>((from + 2 * to) % 5) * scale);
  };
  for (const std::size_t scale : {std::size_t{1}, std::size_t{2'003}})
    for (const Form form : forms) {
      Counts out, in;
      for (Rank peer = 0; peer < comm.size(); ++peer) {
        out.push_back(length(comm.rank(), peer, scale));
        in.push_back(length(peer, comm.rank(), scale));
      }
      std::vector<T> sent, received(total(in));
      for (Rank peer = 0; peer < comm.size(); ++peer)
        for (std::int64_t i = 0; i < out[static_cast<std::size_t>(peer)]; ++i)
          sent.push_back(value<T>(comm.rank() + 3 * peer, static_cast<std::size_t>(i)));
      if (form == Form::blocking)
        comm.all_to_all(sent, out, received, in);
      else
        comm.all_to_all_async(sent, out, received, in).wait();
      std::size_t at = 0;
      for (Rank peer = 0; peer < comm.size(); ++peer)
        for (std::int64_t i = 0; i < in[static_cast<std::size_t>(peer)]; ++i, ++at)
          expect_equal(received[at], value<T>(peer + 3 * comm.rank(), static_cast<std::size_t>(i)),
                       "from {} element {}", peer, i);
      expect(at == received.size(), "length");
    }
}

template <class T>
void scan_case(Communicator& comm) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{5'003}})
    for (const Form form : forms) {
      const std::vector<T> mine = values<T>(comm.rank(), n);
      std::vector<T> inclusive = mine, exclusive(n);
      if (form == Form::blocking) {
        comm.scan(inclusive, inclusive, Reduction::sum);
        comm.exclusive_scan(mine, exclusive, Reduction::sum);
      } else {
        Request first = comm.scan_async(inclusive, inclusive, Reduction::sum);
        Request second = comm.exclusive_scan_async(mine, exclusive, Reduction::sum);
        second.wait();
        first.wait();
      }
      for (std::size_t i = 0; i < n; ++i) {
        const double below = comm.rank() == 0 ? 0.0 : reduced(Reduction::sum, comm.rank(), i);
        expect_equal(exclusive[i], from_double<T>(below), "exclusive, element {}", i);
        expect_equal(inclusive[i], from_double<T>(reduced(Reduction::sum, comm.rank() + 1, i)),
                     "inclusive, element {}", i);
      }
      expect(true, "");
    }
}

void exclusive_identities(Communicator& comm) {
  std::vector<float> x = {2.0f}, out(1);
  comm.exclusive_scan(x, out, Reduction::product);
  expect_equal(out[0], static_cast<float>(1 << comm.rank()), "product");
  comm.exclusive_scan(x, out, Reduction::min);
  expect_equal(out[0], comm.rank() == 0 ? std::numeric_limits<float>::infinity() : 2.0f, "minimum");
  std::vector<std::int32_t> n = {7}, least(1);
  comm.exclusive_scan(n, least, Reduction::max);
  expect_equal(least[0], comm.rank() == 0 ? std::numeric_limits<std::int32_t>::lowest() : 7, "maximum");
}

// Everybody exchanges with both neighbours of a ring, which may be one rank, or itself.
void exchange_case(Communicator& comm) {
  const Rank next = (comm.rank() + 1) % comm.size(), previous = (comm.rank() + comm.size() - 1) % comm.size();
  for (const std::size_t n : {std::size_t{0}, std::size_t{9}, std::size_t{30'011}})
    for (const Form form : forms) {
      const std::vector<double> up = values<double>(comm.rank(), n),
                                down = values<double>(comm.rank() + 1, n + 1);
      std::vector<double> from_below(n), from_above(n + 1);
      // Between two ranks messages of a tag match in order, so both sides list them alike.
      const std::array sends = {Communicator::part(next, up), Communicator::part(previous, down)};
      const std::array receives = {Communicator::part(previous, from_below),
                                   Communicator::part(next, from_above)};
      if (form == Form::blocking)
        comm.exchange(sends, receives, 4);
      else
        comm.exchange_async(sends, receives, 4).wait();
      for (std::size_t i = 0; i < n; ++i)
        expect_equal(from_below[i], value<double>(previous, i), "from below");
      for (std::size_t i = 0; i <= n; ++i)
        expect_equal(from_above[i], value<double>(next + 1, i), "from above");
    }
}

void sendrecv_case(Communicator& comm) {
  for (int shift = 0; shift < comm.size(); ++shift) {
    const Rank to = (comm.rank() + shift) % comm.size(),
               from = (comm.rank() + comm.size() - shift) % comm.size();
    const std::vector<std::int16_t> mine = values<std::int16_t>(comm.rank(), 501);
    std::vector<std::int16_t> theirs(501);
    comm.sendrecv(mine, to, theirs, from);
    for (std::size_t i = 0; i < theirs.size(); ++i)
      expect_equal(theirs[i], value<std::int16_t>(from, i), "element");
  }
}

// Large messages in both directions at once, started before any is waited for.
void many_at_once(Communicator& comm) {
  const std::size_t n = 50'021;
  std::vector<std::vector<float>> out, in;
  std::vector<Request> requests;
  out.reserve(static_cast<std::size_t>(comm.size()));
  in.reserve(static_cast<std::size_t>(comm.size()));
  for (Rank peer = 0; peer < comm.size(); ++peer) {
    if (peer == comm.rank()) continue;
    out.push_back(values<float>(comm.rank() + peer, n));
    in.emplace_back(n);
    requests.push_back(comm.send_async(out.back(), peer, 2));
    requests.push_back(comm.recv_async(in.back(), peer, 2));
  }
  std::vector<std::int64_t> sums(3);
  std::vector<std::vector<std::int64_t>> ones(3, {1});
  for (std::size_t i = 0; i < 3; ++i)
    requests.push_back(comm.all_reduce_async(ones[i], std::span(&sums[i], 1), Reduction::sum));
  requests.push_back(comm.barrier_async());
  wait_all(requests);
  for (const std::int64_t sum : sums) expect_equal(sum, std::int64_t{comm.size()}, "sum");
  std::size_t at = 0;
  for (Rank peer = 0; peer < comm.size(); ++peer) {
    if (peer == comm.rank()) continue;
    for (std::size_t i = 0; i < n; i += 11)
      expect_equal(in[at][i], value<float>(comm.rank() + peer, i), "element");
    ++at;
  }
}

// Several of one kind under way in one communicator and its duplicate, waited for in reverse order.
void overlapping(Communicator& comm) {
  Communicator other = comm.duplicate();
  std::vector<std::vector<double>> data;
  for (int k = 0; k < 6; ++k) data.push_back(values<double>(comm.rank() + k, 1'003));
  std::vector<Request> requests;
  for (std::size_t k = 0; k < data.size(); ++k)
    requests.push_back((k % 2 ? other : comm).all_reduce_async(data[k], Reduction::sum));
  std::ranges::reverse(requests);
  while (!std::ranges::all_of(requests, [](Request& request) { return request.test(); })) {
  }
  for (std::size_t k = 0; k < data.size(); ++k)
    for (std::size_t i = 0; i < data[k].size(); ++i) {
      double expected = 0;
      for (Rank r = 0; r < comm.size(); ++r) expected += value<double>(r + static_cast<int>(k), i);
      expect_equal(data[k][i], expected, "element");
    }
}

void broadcast_and_gather_async(Communicator& comm) {
  std::vector<int> word = {comm.rank() == comm.size() - 1 ? 77 : 0};
  std::vector<int> all(static_cast<std::size_t>(comm.size()));
  const std::vector<int> mine = {comm.rank()};
  const Counts ones(static_cast<std::size_t>(comm.size()), 1);
  std::vector<Request> requests;
  requests.push_back(comm.broadcast_async(word, comm.size() - 1));
  requests.push_back(comm.all_gather_async(mine, all, ones));
  wait_all(requests);
  expect_equal(word[0], 77, "broadcast");
  for (Rank r = 0; r < comm.size(); ++r) expect_equal(all[static_cast<std::size_t>(r)], r, "all_gather");
}

// Of the members alone: the others do something else meanwhile.
void subset_case(Communicator& comm) {
  std::vector<Rank> members;
  for (Rank r = comm.size() - 1; r >= 0; r -= 2) members.push_back(r);  // in reverse
  if (std::ranges::count(members, comm.rank()) > 0) {
    Communicator part = comm.subset(members);
    expect_equal(part.size(), static_cast<int>(members.size()), "size");
    expect_equal(members[static_cast<std::size_t>(part.rank())], comm.rank(), "rank");
    expect_equal(part.all_reduce(std::int64_t{comm.rank()}, Reduction::sum),
                 std::accumulate(members.begin(), members.end(), std::int64_t{0}), "sum");
    for (Rank r = 0; r < part.size(); ++r)
      expect_equal(part.world_rank(r), comm.world_rank(members[static_cast<std::size_t>(r)]), "world rank");
  }
  expect_equal(comm.all_reduce(1, Reduction::sum), comm.size(), "parent afterwards");
  const std::vector<Rank> twice = {comm.rank(), comm.rank()};
  expect_error(
      ErrorCode::invalid_argument, [&] { (void)comm.subset(twice); }, "a member that stands twice");
  const std::vector<Rank> others = {(comm.rank() + 1) % comm.size()};
  if (comm.size() > 1)
    expect_error(
        ErrorCode::invalid_argument, [&] { (void)comm.subset(others); }, "not a member");
}

// More than the libraries have contexts: those that are dropped are given back. (With more ranks than cores,
// MPI takes a millisecond for each, so these take some only.)
void many_communicators(Communicator& comm) {
  const std::int64_t growth = growth_by_communicators(comm, comm.size() <= 2 ? 3'000 : 100);
  expect(sanitized || growth < (std::int64_t{8} << 20), "memory grows with every communicator");
}

void misuse_of_counts(Communicator& comm) {
  std::vector<float> data(4);
  const auto wrong = [&](auto&& call, const char* what) {
    expect_error(ErrorCode::invalid_argument, call, what);
  };
  const Counts negative(static_cast<std::size_t>(comm.size()), -1);
  const Counts few(static_cast<std::size_t>(comm.size() - 1), 1);
  wrong([&] { comm.reduce_scatter(data, data, negative, Reduction::sum); }, "negative count");
  wrong([&] { comm.gather(data, data, few, 0); }, "a count missing");
  wrong([&] { comm.scatter(data, data, few, comm.size()); }, "no such root");
  wrong([&] { comm.all_to_all(data, few, data, few); }, "counts missing");
  wrong([&] { comm.exchange({}, {}, -1); }, "negative tag");
  const std::array to_nobody = {Communicator::part(comm.size(), data)};
  wrong([&] { comm.exchange(to_nobody, {}); }, "no such peer");
  const std::array to_me = {Communicator::part(comm.rank(), data)};
  wrong([&] { comm.exchange(to_me, {}); }, "nothing received from itself");
  comm.barrier();
}

template <class T>
void add_type(std::vector<Case>& cases, const std::string& type) {
  cases.push_back({"reduce/" + type, reduce_case<T>});
  cases.push_back({"reduce_scatter/" + type, reduce_scatter_case<T>});
  cases.push_back({"gather and scatter/" + type, gather_scatter_case<T>});
  cases.push_back({"all_to_all/" + type, all_to_all_case<T>});
  cases.push_back({"scan/" + type, scan_case<T>});
}

}  // namespace

void add_pattern_cases(std::vector<Case>& cases) {
  add_type<std::int16_t>(cases, "int16");
  add_type<std::int64_t>(cases, "int64");
  add_type<float16>(cases, "float16");
  add_type<float>(cases, "float32");
  add_type<double>(cases, "float64");
  cases.push_back({"scan/identities", exclusive_identities});
  cases.push_back({"exchange", exchange_case});
  cases.push_back({"sendrecv", sendrecv_case});
  cases.push_back({"async/many at once", many_at_once});
  cases.push_back({"async/overlapping", overlapping});
  cases.push_back({"async/broadcast and all_gather", broadcast_and_gather_async});
  cases.push_back({"subset", subset_case});
  cases.push_back({"communicators, many", many_communicators});
  cases.push_back({"misuse/counts", misuse_of_counts});
}

}  // namespace shoal::comm::conformance
