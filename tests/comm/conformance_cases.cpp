// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdint>
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
      for (std::size_t i = 0; i < n; ++i)
        expect_equal(data[i], value<T>(root, i), fmt::format("element {}", i));
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
      expect_equal(out[i], expected, fmt::format("n={} element {}", n, i));
      expect_equal(in_place[i], expected, fmt::format("in place, n={} element {}", n, i));
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

// A sum whose float bits depend on the order: the order must be that of the ranks.
void sums_in_rank_order(Communicator& comm) {
  std::vector<float> data(257);
  const auto term = [](Rank rank, std::size_t i) {
    return (rank % 2 ? -1.0f : 1.0f) * 1e7f / static_cast<float>(rank + 1) + static_cast<float>(i) * 0.37f;
  };
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = term(comm.rank(), i);
  comm.all_reduce(data, Reduction::sum);
  for (std::size_t i = 0; i < data.size(); ++i) {
    float expected = term(0, i);
    for (Rank r = 1; r < comm.size(); ++r) expected += term(r, i);
    expect_equal(data[i], expected, fmt::format("element {}", i));
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
      expect_equal(out[at], value<T>(r, i), fmt::format("rank {} element {}", r, i));
      expect_equal(unknown[at], value<T>(r, i), fmt::format("counts unknown, rank {} element {}", r, i));
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

void segments_ring(const Communicator& comm) {
  const std::size_t n = 5000;
  SymmetricSegments<float> segments(comm, 2 * n);
  SymmetricSegments<float> read(comm, 0);  // signals alone: the reader tells the writer how far it is
  const Rank next = (comm.rank() + 1) % comm.size(), previous = (comm.rank() + comm.size() - 1) % comm.size();
  for (std::uint64_t round = 1; round <= 20; ++round) {
    const std::size_t half = round % 2 * n;  // two halves in turn
    if (round > 2) read.wait(next, round - 2);
    segments.put(next, half, View<const float>(values<float>(comm.rank() + static_cast<int>(round), n)),
                 round);
    segments.wait(previous, round);
    for (std::size_t i = 0; i < n; i += 97)
      expect_equal(segments.from(previous)[half + i], value<float>(previous + static_cast<int>(round), i),
                   fmt::format("round {} element {}", round, i));
    read.signal(previous, round);
  }
  expect(segments.received(previous) == 20, "sequence");
  segments.flush();
  read.flush();
  Communicator(comm).barrier();
}

void segments_case(Communicator& comm) { segments_ring(comm); }

void segments_of_a_part(Communicator& comm) {
  std::optional<Communicator> part = comm.split(comm.rank() / 2);
  segments_ring(*part);
  std::optional<Communicator> other = comm.split(comm.rank() % 2);
  SymmetricSegments<std::int32_t> outer(comm, 4);  // lives across the inner ones
  segments_ring(*other);
  for (Rank r = 0; r < comm.size(); ++r)
    outer.put(r, 1, View<const std::int32_t>(std::vector{100 + comm.rank()}), 1);
  for (Rank r = 0; r < comm.size(); ++r) {
    outer.wait(r, 1);
    expect_equal(outer.from(r)[1], 100 + r, "value");
    expect_equal(outer.from(r)[0], 0, "zeroed");
  }
  outer.flush();
  comm.barrier();
}

void segments_everybody(Communicator& comm) {
  SymmetricSegments<std::int64_t> segments(comm, 3);
  for (Rank peer = 0; peer < comm.size(); ++peer) {
    const std::vector<std::int64_t> data = {comm.rank(), peer, 1000};
    segments.put(peer, 0, View<const std::int64_t>(data));  // without a signal ...
    segments.signal(peer, 7);                               // ... which covers it
  }
  for (Rank peer = 0; peer < comm.size(); ++peer) {
    segments.wait(peer, 7);
    expect_equal(segments.from(peer)[0], std::int64_t{peer}, "writer");
    expect_equal(segments.from(peer)[1], std::int64_t{comm.rank()}, "reader");
  }
  segments.flush();
  comm.barrier();
  for (Rank peer = 0; peer < comm.size(); ++peer) {
    std::vector<std::int64_t> back(2);
    segments.get(peer, 1, View<std::int64_t>(back));
    expect_equal(back[0], std::int64_t{peer}, "get");
    expect_equal(back[1], std::int64_t{1000}, "get");
    const std::span<std::int64_t> direct = segments.direct(peer);
    if (!direct.empty()) expect_equal(direct[2], std::int64_t{1000}, "direct load");
  }
  expect(!segments.wait_for(comm.rank(), 8, std::chrono::milliseconds(20)), "deadline of a wait");
  expect_error(
      ErrorCode::invalid_argument,
      [&] { segments.put(0, 2, View<const std::int64_t>(std::vector<std::int64_t>(2))); }, "past the end");
  comm.barrier();
}

// A large transfer in one put, larger than any internal buffer.
void segments_large(Communicator& comm) {
  const std::size_t n = std::size_t{1} << 20;
  SymmetricSegments<std::uint8_t> segments(comm, n);
  const Rank next = (comm.rank() + 1) % comm.size(), previous = (comm.rank() + comm.size() - 1) % comm.size();
  segments.put(next, 0, View<const std::uint8_t>(values<std::uint8_t>(comm.rank(), n)), 1);
  segments.wait(previous, 1);
  for (std::size_t i = 0; i < n; i += 4093)
    expect_equal(segments.from(previous)[i], value<std::uint8_t>(previous, i), "element");
  segments.flush();
  comm.barrier();
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
  expect_error(
      ErrorCode::unsupported,
      [&] { comm.all_reduce(View<float>(data.data(), data.size(), MemorySpace::device), Reduction::sum); },
      "device memory");
  std::vector<std::complex<float>> z(1);
  expect_error(
      ErrorCode::unsupported, [&] { comm.all_reduce(z, Reduction::max); }, "complex maximum");
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
  add_type<std::int32_t>(cases, "int32");
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
  cases.push_back({"segments/ring", segments_case});
  cases.push_back({"segments/part", segments_of_a_part});
  cases.push_back({"segments/everybody", segments_everybody});
  cases.push_back({"segments/large", segments_large});
  cases.push_back({"misuse", misuse_case});
  add_pattern_cases(cases);
  return cases;
}

}  // namespace shoal::comm::conformance
