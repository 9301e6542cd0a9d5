// SPDX-License-Identifier: Apache-2.0
// Symmetric segments: puts, signals, waits, order.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "comm/conformance.h"
#include "comm/conformance_support.h"
#include "shoal/base/error.h"
#include "shoal/comm/symmetric_segments.h"

namespace shoal::comm::conformance {
namespace {

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
                   "round {} element {}", round, i);
    read.signal(previous, round);
  }
  expect(segments.received(previous) == 20, "sequence");
  segments.flush();
  read.flush();
  Communicator(comm).barrier();
}

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
  // Offsets and lengths whose bytes 64 bits cannot count.
  constexpr std::size_t wraps = std::size_t{1} << 61;
  expect_error(
      ErrorCode::invalid_argument,
      [&] { segments.put(0, wraps, View<const std::int64_t>(std::vector<std::int64_t>(1))); },
      "far past the end");
  expect_error(
      ErrorCode::invalid_argument, [&] { (void)SymmetricSegments<std::int64_t>(comm, wraps); },
      "far too long");
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

// One signal after the other, in an order that differs from rank to rank; and all of them.
void segments_any_and_all(Communicator& comm) {
  SymmetricSegments<std::int32_t> segments(comm, 2);
  std::vector<Awaited> open, second;
  for (Rank r = 0; r < comm.size(); ++r) {
    open.push_back({r, 1});
    second.push_back({r, 2});
  }
  expect(!segments.wait_all_for(second, std::chrono::milliseconds(5)), "nothing has come for all");
  expect(!segments.wait_any_for(second, std::chrono::milliseconds(5)), "nothing has come for any");
  comm.barrier();
  for (int i = 0; i < comm.size(); ++i) {
    const Rank peer = (comm.rank() + i) % comm.size();
    segments.put(peer, 0, View<const std::int32_t>(std::vector{10 * comm.rank() + peer}), 1);
  }
  while (!open.empty()) {
    const std::size_t found = segments.wait_any(open);
    const Rank peer = open[found].peer;
    expect(segments.received(peer) >= 1, "the signal that wait_any names has come");
    expect_equal(segments.from(peer)[0], 10 * peer + comm.rank(), "value");
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(found));
  }
  for (Rank peer = comm.size() - 1; peer >= 0; --peer)
    segments.put(peer, 1, View<const std::int32_t>(std::vector{-comm.rank()}), 2);
  segments.wait_all(second);
  for (Rank peer = 0; peer < comm.size(); ++peer)
    expect_equal(segments.from(peer)[1], -peer, "after wait_all");
  expect_equal(*segments.wait_any_for(second, std::chrono::milliseconds(0)), std::size_t{0},
               "first in the list");
  segments.wait_all({});
  expect_error(
      ErrorCode::invalid_argument, [&] { (void)segments.wait_any({}); }, "any of none");
  const std::vector<Awaited> nobody = {{comm.size(), 1}};
  expect_error(
      ErrorCode::invalid_argument, [&] { segments.wait_all(nobody); }, "no such rank");
  segments.flush();
  comm.barrier();
}

// Two puts to the same elements with a fence between them: the later one wins.
void segments_fence(Communicator& comm) {
  const std::size_t n = 10'000;
  SymmetricSegments<float> segments(comm, n);
  const Rank next = (comm.rank() + 1) % comm.size(), previous = (comm.rank() + comm.size() - 1) % comm.size();
  for (std::uint64_t round = 1; round <= 10; ++round) {
    const int shift = static_cast<int>(round);
    segments.put(next, 0, View<const float>(values<float>(comm.rank() + shift + 1, n)));
    segments.fence();
    segments.put(next, 0, View<const float>(values<float>(comm.rank() + shift, n)));
    segments.signal(next, round);
    segments.wait(previous, round);
    for (std::size_t i = 0; i < n; i += 13)
      expect_equal(segments.from(previous)[i], value<float>(previous + shift, i), "the later put");
    comm.barrier();  // read before it is written again
  }
}

}  // namespace

void add_segment_cases(std::vector<Case>& cases) {
  cases.push_back({"segments/ring", [](Communicator& comm) { segments_ring(comm); }});
  cases.push_back({"segments/part", segments_of_a_part});
  cases.push_back({"segments/everybody", segments_everybody});
  cases.push_back({"segments/any and all", segments_any_and_all});
  cases.push_back({"segments/fence", segments_fence});
  cases.push_back({"segments/large", segments_large});
}

}  // namespace shoal::comm::conformance
