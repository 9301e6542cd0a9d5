// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <thread>

#include "comm/conformance.h"
#include "comm/conformance_support.h"
#include "shoal/base/error.h"
#include "shoal/comm/symmetric_segments.h"
#include "shoal/comm/transport.h"

namespace shoal::comm::conformance {

std::int64_t& comparisons() {
  thread_local std::int64_t count = 0;
  return count;
}

namespace {

const std::vector<std::size_t> sizes = {0, 1, 3, 1000, 40'007};

template <class T>
void broadcast_case(Communicator& comm) {
  for (Rank root = 0; root < comm.size(); ++root)
    for (const std::size_t n : sizes) {
      std::vector<T> data = comm.rank() == root ? values<T>(root, n) : std::vector<T>(n);
      comm.broadcast(data, root);
      for (std::size_t i = 0; i < n; ++i) expect_equal(data[i], value<T>(root, i), "element {}", i);
    }
}

template <class T>
void all_reduce_case(Communicator& comm, Reduction reduction) {
  for (const std::size_t n : sizes) {
    const std::vector<T> mine = values<T>(comm.rank(), n);
    std::vector<T> out(n), in_place = mine;
    comm.all_reduce(mine, out, reduction);
    comm.all_reduce(in_place, reduction);
    for (std::size_t i = 0; i < n; ++i) {
      const T expected = from_double<T>(reduced(reduction, comm.size(), i));
      expect_equal(out[i], expected, "n={} element {}", n, i);
      expect_equal(in_place[i], expected, "in place, n={} element {}", n, i);
    }
  }
}

void logical_case(Communicator& comm) {
  for (Rank odd = 0; odd < comm.size(); ++odd) {
    const std::int32_t mine = comm.rank() == odd ? 1 : 0;
    expect_equal(comm.all_reduce(mine, Reduction::logical_or), 1, "or");
    expect_equal(comm.all_reduce(mine, Reduction::logical_and), comm.size() == 1 ? 1 : 0, "and");
  }
}

// 2048 + 1 + 1 + ... in float16 stays at 2048 unless it is summed in float32 and rounded once.
void half_sums_in_float(Communicator& comm) {
  std::vector<float16> data(3, float16(comm.rank() == 0 ? 2048.0f : 1.0f));
  comm.all_reduce(data, Reduction::sum);
  for (const float16 x : data) expect_equal(x, float16(2048.0f + static_cast<float>(comm.size() - 1)), "sum");
}

// Whether sums must run in rank order over all ranks: on one host, and where the job asks for it.
bool is_rank_order_due(const Communicator& comm) {
  if (std::getenv("SHOAL_REPRODUCIBLE")) return true;
  if (std::getenv("SHOAL_FAKE_HOSTS") || std::getenv("SHOAL_NO_HOST_MEMORY")) return false;
  for (Rank r = 1; r < comm.size(); ++r)
    if (comm.host(r) != comm.host(0)) return false;
  return true;
}

// A sum whose float bits depend on the order: they are those of the order of ranks where that is due, and
// always the same on all ranks and each time.
void sums_in_rank_order(Communicator& comm) {
  const auto term = [](Rank rank, std::size_t i) {
    return (rank % 2 ? -1.0f : 1.0f) * 1e7f / static_cast<float>(rank + 1) + static_cast<float>(i) * 0.37f;
  };
  for (const std::size_t n : {std::size_t{257}, std::size_t{40'007}}) {
    std::vector<float> data(n), again(n);
    for (std::size_t i = 0; i < n; ++i) data[i] = term(comm.rank(), i);
    comm.all_reduce(data, again, Reduction::sum);
    comm.all_reduce(data, Reduction::sum);
    expect(data == again, "the same each time");
    comm.broadcast(again, 0);
    expect(data == again, "the same on all ranks");
    for (std::size_t i = 0; is_rank_order_due(comm) && i < n; ++i) {
      float expected = term(0, i);
      for (Rank r = 1; r < comm.size(); ++r) expected += term(r, i);
      expect_equal(data[i], expected, "element {}", i);
    }
  }
}

template <class T>
void all_gather_case(Communicator& comm, std::size_t scale) {
  // Rank r gives r * scale elements, and 1 more when r is odd: rank 0 gives none.
  const auto length = [&](Rank r) {
    return static_cast<std::size_t>(r) * scale + static_cast<std::size_t>(r % 2);
  };
  std::vector<std::int64_t> counts;
  for (Rank r = 0; r < comm.size(); ++r) counts.push_back(static_cast<std::int64_t>(length(r)));
  const std::vector<T> mine = values<T>(comm.rank(), length(comm.rank()));
  std::vector<T> out(
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})));
  comm.all_gather(mine, out, counts);
  const std::vector<T> unknown = comm.all_gather(mine);
  std::size_t at = 0;
  for (Rank r = 0; r < comm.size(); ++r)
    for (std::size_t i = 0; i < length(r); ++i, ++at) {
      expect_equal(out[at], value<T>(r, i), "rank {} element {}", r, i);
      expect_equal(unknown[at], value<T>(r, i), "counts unknown, rank {} element {}", r, i);
    }
  expect(at == unknown.size(), "length");
}

void strings_case(Communicator& comm) {
  const auto text = [](Rank r) {
    return std::string(static_cast<std::size_t>(r), static_cast<char>('a' + r));
  };
  const std::vector<std::string> all = comm.all_gather_strings(text(comm.rank()));
  expect(static_cast<int>(all.size()) == comm.size(), "number of strings");
  for (Rank r = 0; r < comm.size(); ++r) expect(all[static_cast<std::size_t>(r)] == text(r), "string");
}

// Around the ring, even ranks sending first; then tags out of order.
void send_recv_case(Communicator& comm) {
  if (comm.size() == 1) return expect(true, "");
  const Rank next = (comm.rank() + 1) % comm.size(), previous = (comm.rank() + comm.size() - 1) % comm.size();
  for (const std::size_t n : sizes) {
    const std::vector<double> mine = values<double>(comm.rank(), n);
    std::vector<double> theirs(n);
    if (comm.rank() % 2 == 0) {
      comm.send(mine, next);
      comm.recv(theirs, previous);
    } else {
      comm.recv(theirs, previous);
      comm.send(mine, next);
    }
    for (std::size_t i = 0; i < n; ++i) expect_equal(theirs[i], value<double>(previous, i), "ring");
  }
  if (comm.rank() == 0) {
    for (int tag = 0; tag < 3; ++tag) comm.send(std::vector<int>{tag, 10 * tag}, 1, tag);
    comm.send(std::vector<int>{77}, 1, 1);
  } else if (comm.rank() == 1) {
    std::vector<int> data(2), last(1);
    for (const int tag : {2, 0, 1}) {
      comm.recv(data, 0, tag);
      expect_equal(data[1], 10 * tag, "tags out of order");
    }
    comm.recv(last, 0, 1);
    expect_equal(last[0], 77, "second message of a tag");
  }
}

// Collectives between a message's sending and its receiving do not disturb it.
void messages_and_collectives(Communicator& comm) {
  if (comm.size() == 1) return expect(true, "");
  if (comm.rank() == 0) comm.send(values<float>(5, 10), comm.size() - 1, 9);
  expect_equal(comm.all_reduce(std::int64_t{1}, Reduction::sum), std::int64_t{comm.size()}, "sum");
  comm.barrier();
  if (comm.rank() == comm.size() - 1) {
    std::vector<float> data(10);
    comm.recv(data, 0, 9);
    for (std::size_t i = 0; i < 10; ++i) expect_equal(data[i], value<float>(5, i), "message");
  }
}

// Nobody leaves before the last has come: each rank in turn comes late, and the clock readings of all
// are compared afterwards (the ranks of a test share a clock).
void barrier_case(Communicator& comm) {
  const auto now = [] {
    return static_cast<std::int64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  };
  for (Rank late = 0; late < comm.size(); ++late) {
    if (comm.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::int64_t entered = now();
    comm.barrier();
    const std::int64_t left = now();
    expect(comm.all_reduce(left, Reduction::min) >= comm.all_reduce(entered, Reduction::max),
           "a rank has left before the last had come");
  }
}

void split_case(Communicator& comm) {
  // Odd and even ranks, in reverse order.
  std::optional<Communicator> half = comm.split(comm.rank() % 2, -comm.rank());
  expect(half.has_value(), "has a communicator");
  std::vector<Rank> members;
  for (Rank r = comm.size() - 1; r >= 0; --r)
    if (r % 2 == comm.rank() % 2) members.push_back(r);
  expect_equal(half->size(), static_cast<int>(members.size()), "size");
  expect_equal(members[static_cast<std::size_t>(half->rank())], comm.rank(), "rank");
  expect_equal(half->all_reduce(std::int64_t{comm.rank()}, Reduction::sum),
               std::accumulate(members.begin(), members.end(), std::int64_t{0}), "sum");
  std::vector<int> word = {half->rank() == 0 ? comm.rank() : -1};
  half->broadcast(word, 0);
  expect_equal(word[0], members[0], "broadcast");

  // Only the first rank gets one; then both levels are used in turn.
  std::optional<Communicator> first = comm.split(comm.rank() == 0 ? 0 : -1);
  expect(first.has_value() == (comm.rank() == 0), "color < 0");
  if (first) expect_equal(first->all_reduce(5, Reduction::sum), 5, "alone");
  expect_equal(comm.all_reduce(1, Reduction::sum), comm.size(), "parent afterwards");
  std::optional<Communicator> again = half->split(0);
  expect_equal(again->all_reduce(1, Reduction::sum), half->size(), "split of a split");
}

void many_splits(Communicator& comm) {
  for (int i = 0; i < 50; ++i) {
    std::optional<Communicator> part = comm.split(comm.rank() % (1 + i % 3));
    expect_equal(part->all_reduce(1, Reduction::sum), part->size(), "size");
  }
}

void misuse_case(Communicator& comm) {
  std::vector<float> data(4);
  expect_error(
      ErrorCode::invalid_argument, [&] { comm.broadcast(data, comm.size()); }, "root out of range");
  expect_error(
      ErrorCode::invalid_argument, [&] { comm.send(data, comm.rank()); }, "send to itself");
  expect_error(
      ErrorCode::invalid_argument, [&] { comm.recv(data, -1); }, "negative rank");
  expect_error(
      ErrorCode::invalid_argument, [&] { comm.all_gather(data, data, std::vector<std::int64_t>{}); },
      "counts missing");
  const View<double> endless(nullptr, std::size_t{1} << 61);
  expect_error(
      ErrorCode::invalid_argument, [&] { comm.broadcast(endless, 0); }, "too many bytes", "64 bits");
  // These sum to 4 if the sum wraps around.
  std::vector<std::int64_t> huge(static_cast<std::size_t>(comm.size()), 0);
  if (comm.size() >= 3) {
    huge[0] = huge[1] = std::numeric_limits<std::int64_t>::max();
    huge[2] = 6;
    expect_error(
        ErrorCode::invalid_argument, [&] { comm.all_to_all(data, huge, data, huge); }, "sum of the counts",
        "64 bits");
  }
  comm.barrier();
}

// No transport of the host carries device memory: every pattern says so, on every rank, and all go on.
void device_memory(Communicator& comm) {
  std::vector<float> data(static_cast<std::size_t>(comm.size()));
  const View<float> device(data.data(), data.size(), MemorySpace::device);
  const std::vector<std::int64_t> ones(data.size(), 1);
  const View<float> one(data.data(), 1, MemorySpace::device);
  const auto refused = [&](auto&& call, const char* what) {
    expect_error(ErrorCode::unsupported, call, what);
  };
  refused([&] { comm.broadcast(device, 0); }, "broadcast");
  refused([&] { comm.all_reduce(device, Reduction::sum); }, "all_reduce");
  refused([&] { comm.all_reduce_async(device, Reduction::sum).wait(); }, "all_reduce_async");
  refused([&] { comm.reduce(data, device, Reduction::sum, 0); }, "reduce");
  refused([&] { comm.reduce_scatter(device, one, ones, Reduction::sum); }, "reduce_scatter");
  refused([&] { comm.scan(device, device, Reduction::sum); }, "scan");
  refused([&] { comm.all_gather(one, data, ones); }, "all_gather");
  refused([&] { comm.gather(one, data, ones, 0); }, "gather");
  refused([&] { comm.scatter(data, one, ones, 0); }, "scatter");
  refused([&] { comm.all_to_all(device, ones, data, ones); }, "all_to_all");
  refused([&] { comm.send(device, 0); }, "send");
  refused([&] { comm.recv(device, 0); }, "recv");
  refused([&] { comm.sendrecv(data, 0, device, 0); }, "sendrecv");
  SymmetricSegments<float> segments(comm, 8);
  refused([&] { segments.put(0, 0, one); }, "put");
  refused([&] { segments.put(0, 0, one, 1); }, "put with signal");
  refused([&] { segments.get(0, 0, one); }, "get");
  comm.barrier();
}

template <class T>
void add_type(std::vector<Case>& cases, const std::string& type) {
  cases.push_back({"broadcast/" + type, broadcast_case<T>});
  cases.push_back({"all_gather/" + type, [](Communicator& comm) { all_gather_case<T>(comm, 3); }});
  for (const Reduction reduction : {Reduction::sum, Reduction::max, Reduction::min, Reduction::product}) {
    if (reduction == Reduction::product && sizeof(T) < 2) continue;  // 5^6 does not fit
    cases.push_back({fmt::format("all_reduce/{}/{}", to_string(reduction), type),
                     [reduction](Communicator& comm) { all_reduce_case<T>(comm, reduction); }});
  }
}

template <class T>
void add_complex(std::vector<Case>& cases, const std::string& type) {
  cases.push_back({"broadcast/" + type, broadcast_case<T>});
  cases.push_back(
      {"all_reduce/sum/" + type, [](Communicator& comm) { all_reduce_case<T>(comm, Reduction::sum); }});
}

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  add_type<std::int8_t>(cases, "int8");
  add_type<std::uint8_t>(cases, "uint8");
  add_type<std::int16_t>(cases, "int16");
  add_type<std::uint16_t>(cases, "uint16");
  add_type<std::int32_t>(cases, "int32");
  add_type<std::uint32_t>(cases, "uint32");
  add_type<std::int64_t>(cases, "int64");
  add_type<std::uint64_t>(cases, "uint64");
  add_type<float16>(cases, "float16");
  add_type<bfloat16>(cases, "bfloat16");
  add_type<float>(cases, "float32");
  add_type<double>(cases, "float64");
  add_complex<std::complex<float>>(cases, "complex64");
  add_complex<std::complex<double>>(cases, "complex128");
  cases.push_back({"all_gather/large", [](Communicator& comm) { all_gather_case<double>(comm, 20'011); }});
  cases.push_back({"all_gather/strings", strings_case});
  cases.push_back({"all_reduce/logical", logical_case});
  cases.push_back({"all_reduce/half in float", half_sums_in_float});
  cases.push_back({"all_reduce/rank order", sums_in_rank_order});
  cases.push_back({"send and recv", send_recv_case});
  cases.push_back({"messages and collectives", messages_and_collectives});
  cases.push_back({"barrier", barrier_case});
  cases.push_back({"split", split_case});
  cases.push_back({"split/many", many_splits});
  cases.push_back({"misuse", misuse_case});
  cases.push_back({"device memory", device_memory});
  add_pattern_cases(cases);
  add_form_cases(cases);
  add_reduction_cases(cases);
  add_strided_cases(cases);
  add_segment_cases(cases);
  return cases;
}

Tally run_cases(Communicator& world, const std::string& only, const std::function<void()>& between) {
  Tally tally;
  for (const Case& test : all_cases()) {
    if (!only.empty() && test.name != only) continue;
    comparisons() = 0;
    try {
      test.run(world);
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("case '{}': {}", test.name, error.what()));
    }
    if (comparisons() == 0 && world.rank() == 0 && world.size() > 1)
      throw std::runtime_error(fmt::format("case '{}' compared nothing", test.name));
    ++tally.cases;
    tally.comparisons += comparisons();
    between();
  }
  return tally;
}

}  // namespace shoal::comm::conformance
