// SPDX-License-Identifier: Apache-2.0
// Every collective in all its forms: blocking and started, in place where it can be, alone and many at once,
// on the whole communicator, on a part of it in reverse order and on a duplicate, with nothing, one element,
// an odd number and more than fits any internal buffer.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "comm/conformance.h"
#include "comm/conformance_support.h"

namespace shoal::comm::conformance {
namespace {

using Counts = std::vector<std::int64_t>;
using Data = std::vector<double>;

// One call: the buffers live here until it has been checked.
struct Call {
  std::string name;
  std::function<void()> blocking;
  std::function<Request()> async;
  std::function<void()> check;
};

double summed(int ranks, std::size_t i) { return reduced(Reduction::sum, ranks, i); }

// Rank r's part of about n elements in all: every third rank has none.
std::size_t part(Rank r, std::size_t n) {
  return r % 3 == 1 ? 0 : n / static_cast<std::size_t>(r + 1) + static_cast<std::size_t>(r);
}
Counts parts(int ranks, std::size_t n) {
  Counts counts;
  for (Rank r = 0; r < ranks; ++r) counts.push_back(static_cast<std::int64_t>(part(r, n)));
  return counts;
}
std::size_t before(Rank r, std::size_t n) {
  std::size_t sum = 0;
  for (Rank lower = 0; lower < r; ++lower) sum += part(lower, n);
  return sum;
}

void expect_all(const Data& data, const std::function<double(std::size_t)>& expected,
                const std::string& what) {
  for (std::size_t i = 0; i<data.size(); i += data.size()> 1000 ? 7 : 1)
    expect_equal(data[i], expected(i), "{}, element {} of {}", what, i, data.size());
}

void add_reductions(std::vector<Call>& calls, Communicator& c, std::size_t n) {
  const auto in = std::make_shared<Data>(values<double>(c.rank(), n));
  const auto out = std::make_shared<Data>(n), here = std::make_shared<Data>(*in);
  const auto prefix = std::make_shared<Data>(n), below = std::make_shared<Data>(*in),
             root = std::make_shared<Data>(*in);
  const int ranks = c.size();
  calls.push_back({"all_reduce", [=, &c] { c.all_reduce(*in, *out, Reduction::sum); },
                   [=, &c] { return c.all_reduce_async(*in, *out, Reduction::sum); },
                   [=] {
                     expect_all(
                         *out, [=](std::size_t i) { return summed(ranks, i); }, "all_reduce");
                   }});
  calls.push_back({"all_reduce in place", [=, &c] { c.all_reduce(*here, Reduction::sum); },
                   [=, &c] { return c.all_reduce_async(*here, Reduction::sum); },
                   [=] {
                     expect_all(
                         *here, [=](std::size_t i) { return summed(ranks, i); }, "in place");
                   }});
  calls.push_back(
      {"reduce in place", [=, &c] { c.reduce(*root, *root, Reduction::sum, ranks - 1); },
       [=, &c] { return c.reduce_async(*root, *root, Reduction::sum, ranks - 1); },
       [=, &c] {
         const bool holds = c.rank() == ranks - 1;
         const Rank me = c.rank();
         expect_all(
             *root, [=](std::size_t i) { return holds ? summed(ranks, i) : value<double>(me, i); }, "reduce");
       }});
  calls.push_back({"scan", [=, &c] { c.scan(*in, *prefix, Reduction::sum); },
                   [=, &c] { return c.scan_async(*in, *prefix, Reduction::sum); },
                   [=, &c] {
                     const int upto = c.rank() + 1;
                     expect_all(
                         *prefix, [=](std::size_t i) { return summed(upto, i); }, "scan");
                   }});
  calls.push_back({"exclusive_scan in place", [=, &c] { c.exclusive_scan(*below, *below, Reduction::sum); },
                   [=, &c] { return c.exclusive_scan_async(*below, *below, Reduction::sum); },
                   [=, &c] {
                     const int upto = c.rank();
                     expect_all(
                         *below, [=](std::size_t i) { return upto == 0 ? 0.0 : summed(upto, i); },
                         "exclusive_scan");
                   }});
}

void add_parts(std::vector<Call>& calls, Communicator& c, std::size_t n) {
  const int ranks = c.size();
  const Rank me = c.rank(), root = ranks / 2;
  const auto counts = std::make_shared<Counts>(parts(ranks, n));
  const std::size_t all = before(ranks, n), mine = part(me, n), begin = before(me, n);
  // Element i of a concatenation of everybody's values.
  const auto joined = [=](std::size_t i) {
    Rank r = 0;
    while (i >= before(r + 1, n)) ++r;
    return value<double>(r, i - before(r, n));
  };
  const auto whole = std::make_shared<Data>(values<double>(me, all)), slice = std::make_shared<Data>(mine);
  calls.push_back({"reduce_scatter", [=, &c] { c.reduce_scatter(*whole, *slice, *counts, Reduction::sum); },
                   [=, &c] { return c.reduce_scatter_async(*whole, *slice, *counts, Reduction::sum); },
                   [=] {
                     expect_all(
                         *slice, [=](std::size_t i) { return summed(ranks, begin + i); }, "reduce_scatter");
                   }});
  const auto own = std::make_shared<Data>(values<double>(me, mine)), gathered = std::make_shared<Data>(all);
  calls.push_back({"all_gather", [=, &c] { c.all_gather(*own, *gathered, *counts); },
                   [=, &c] { return c.all_gather_async(*own, *gathered, *counts); },
                   [=] { expect_all(*gathered, joined, "all_gather"); }});
  const auto in_place = std::make_shared<Data>(all);
  std::copy(own->begin(), own->end(), in_place->begin() + static_cast<std::ptrdiff_t>(begin));
  const std::span<double> there = std::span(*in_place).subspan(begin, mine);
  calls.push_back({"all_gather in place", [=, &c] { c.all_gather(there, *in_place, *counts); },
                   [=, &c] { return c.all_gather_async(there, *in_place, *counts); },
                   [=] { expect_all(*in_place, joined, "all_gather in place"); }});
  const auto at_root = std::make_shared<Data>(me == root ? all : 0);
  calls.push_back({"gather", [=, &c] { c.gather(*own, *at_root, *counts, root); },
                   [=, &c] { return c.gather_async(*own, *at_root, *counts, root); },
                   [=] { expect_all(*at_root, joined, "gather"); }});
  const auto source = std::make_shared<Data>(me == root ? values<double>(root, all) : Data());
  const auto received = std::make_shared<Data>(mine);
  calls.push_back({"scatter", [=, &c] { c.scatter(*source, *received, *counts, root); },
                   [=, &c] { return c.scatter_async(*source, *received, *counts, root); },
                   [=] {
                     expect_all(
                         *received, [=](std::size_t i) { return value<double>(root, begin + i); }, "scatter");
                   }});
}

void add_others(std::vector<Call>& calls, Communicator& c, std::size_t n) {
  const int ranks = c.size();
  const Rank me = c.rank(), root = ranks - 1;
  const auto data = std::make_shared<Data>(me == root ? values<double>(root, n) : Data(n));
  calls.push_back({"broadcast", [=, &c] { c.broadcast(*data, root); },
                   [=, &c] { return c.broadcast_async(*data, root); },
                   [=] {
                     expect_all(
                         *data, [=](std::size_t i) { return value<double>(root, i); }, "broadcast");
                   }});
  // Rank s sends part(s + d) elements to rank d.
  const auto out = std::make_shared<Counts>(), in = std::make_shared<Counts>();
  const auto sent = std::make_shared<Data>(), expected = std::make_shared<Data>();
  for (Rank peer = 0; peer < ranks; ++peer) {
    out->push_back(static_cast<std::int64_t>(part(me + peer, n)));
    in->push_back(out->back());
    for (std::size_t i = 0; i < part(me + peer, n); ++i) {
      sent->push_back(value<double>(me + 2 * peer, i));
      expected->push_back(value<double>(peer + 2 * me, i));
    }
  }
  const auto got = std::make_shared<Data>(expected->size());
  calls.push_back({"all_to_all", [=, &c] { c.all_to_all(*sent, *out, *got, *in); },
                   [=, &c] { return c.all_to_all_async(*sent, *out, *got, *in); },
                   [=] {
                     expect_all(
                         *got, [=](std::size_t i) { return (*expected)[i]; }, "all_to_all");
                   }});
  const Rank next = (me + 1) % ranks, previous = (me + ranks - 1) % ranks;
  const auto mine = std::make_shared<Data>(values<double>(me, n)), theirs = std::make_shared<Data>(n);
  calls.push_back({"sendrecv", [=, &c] { c.sendrecv(*mine, next, *theirs, previous, 11); },
                   [=, &c] { return c.sendrecv_async(*mine, next, *theirs, previous, 11); },
                   [=] {
                     expect_all(
                         *theirs, [=](std::size_t i) { return value<double>(previous, i); }, "sendrecv");
                   }});
  calls.push_back(
      {"barrier", [&c] { c.barrier(); }, [&c] { return c.barrier_async(); }, [] { expect(true, ""); }});
}

std::vector<Call> all_calls(Communicator& c, std::size_t n) {
  std::vector<Call> calls;
  add_reductions(calls, c, n);
  add_parts(calls, c, n);
  add_others(calls, c, n);
  return calls;
}

void run_forms(Communicator& c, std::size_t n) {
  for (const Call& call : all_calls(c, n)) {
    call.blocking();
    call.check();
  }
  for (const Call& call : all_calls(c, n)) {
    call.async().wait();
    call.check();
  }
  // All at once, then a blocking one before they are waited for, in reverse order.
  const std::vector<Call> calls = all_calls(c, n);
  std::vector<Request> requests;
  for (const Call& call : calls) requests.push_back(call.async());
  expect_equal(c.all_reduce(1, Reduction::sum), c.size(), "while others are under way");
  std::ranges::reverse(requests);
  wait_all(requests);
  for (const Call& call : calls) call.check();
}

const std::vector<std::size_t> small_sizes = {0, 1, 37};
constexpr std::size_t large_size = 150'001;  // 1.2 MB: more than a slot, a chunk or a piece of any transport

void on_the_whole(Communicator& comm) {
  for (const std::size_t n : small_sizes) run_forms(comm, n);
}
void on_a_part(Communicator& comm) {
  std::optional<Communicator> part = comm.split(comm.rank() % 2, -comm.rank());
  for (const std::size_t n : small_sizes) run_forms(*part, n);
}
void on_a_duplicate(Communicator& comm) {
  Communicator twin = comm.duplicate();
  std::vector<Call> calls = all_calls(comm, 37), others = all_calls(twin, 41);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    requests.push_back(calls[i].async());
    requests.push_back(others[i].async());
  }
  wait_all(requests);
  for (const Call& call : calls) call.check();
  for (const Call& call : others) call.check();
}
void large(Communicator& comm) { run_forms(comm, large_size); }
void large_on_a_part(Communicator& comm) {
  std::optional<Communicator> part = comm.split(comm.rank() / 3);
  for (const Call& call : all_calls(*part, large_size)) {
    call.blocking();
    call.check();
  }
}

}  // namespace

void add_form_cases(std::vector<Case>& cases) {
  cases.push_back({"forms/whole", on_the_whole});
  cases.push_back({"forms/part", on_a_part});
  cases.push_back({"forms/duplicate", on_a_duplicate});
  cases.push_back({"forms/large", large});
  cases.push_back({"forms/large, part", large_on_a_part});
}

}  // namespace shoal::comm::conformance
