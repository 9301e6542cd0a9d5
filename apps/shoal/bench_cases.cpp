// SPDX-License-Identifier: Apache-2.0
#include "bench_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace shoal::app {
namespace {

using comm::Communicator;
using comm::Operation;
using comm::Pattern;
using comm::Rank;

constexpr Pattern collectives[] = {
    Pattern::barrier,        Pattern::broadcast, Pattern::reduce,         Pattern::all_reduce,
    Pattern::reduce_scatter, Pattern::gather,    Pattern::scatter,        Pattern::all_gather,
    Pattern::all_to_all,     Pattern::scan,      Pattern::exclusive_scan, Pattern::exchange,
};

std::optional<Pattern> collective(const std::string& name) {
  for (const Pattern pattern : collectives)
    if (comm::to_string(pattern) == name) return pattern;
  return std::nullopt;
}

// A case as one rank sees it.
struct Shape {
  Shape(const BenchCase& bench_case, int ranks_, Rank rank_)
      : ranks(ranks_),
        rank(rank_),
        count(static_cast<std::int64_t>(bench_case.bytes / sizeof(float))),
        counts(static_cast<std::size_t>(ranks_), count) {
    if (bench_case.pattern != comm::to_string(Pattern::reduce_scatter)) return;
    for (Rank r = 0; r < ranks; ++r) counts[static_cast<std::size_t>(r)] = begin_of(r + 1) - begin_of(r);
  }
  // Where rank r's part of a reduced vector begins: as even as it goes.
  std::int64_t begin_of(Rank r) const { return count * r / ranks; }
  std::int64_t total() const { return count * ranks; }
  Rank right() const { return (rank + 1) % ranks; }
  Rank left() const { return (rank + ranks - 1) % ranks; }

  int ranks;
  Rank rank;
  std::int64_t count;                // elements of BenchCase::bytes
  std::vector<std::int64_t> counts;  // of each rank
};

Buffer floats(float* data, std::int64_t count) { return {data, count, DType::float32}; }

// The operations of a case, one for each root, and what they refer to.
struct Operations {
  Operations(Pattern pattern, const Shape& s, float* send, float* recv)
      : shape(s), to{{s.right(), floats(send, s.count)}}, from{{s.left(), floats(recv, s.count)}} {
    for (Rank root = 0; root < (has_root(pattern) ? s.ranks : 1); ++root)
      all.push_back(operation(pattern, root, send, recv));
  }
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  Shape shape;
  std::array<comm::Part, 1> to, from;
  std::vector<Operation> all;

 private:
  Operation operation(Pattern pattern, Rank root, float* send, float* recv) const {
    const Shape& s = shape;
    const std::int64_t mine = s.counts[static_cast<std::size_t>(s.rank)];
    Operation o{.pattern = pattern, .peer = root};
    switch (pattern) {
      case Pattern::broadcast: o.recv = floats(recv, s.count); break;
      case Pattern::gather:
      case Pattern::all_gather:
        o.send = floats(send, s.count);
        o.recv = floats(recv, s.total());
        o.counts = s.counts;
        break;
      case Pattern::scatter:
        o.send = floats(send, s.total());
        o.recv = floats(recv, s.count);
        o.counts = s.counts;
        break;
      case Pattern::all_to_all:
        o.send = floats(send, s.total());
        o.recv = floats(recv, s.total());
        o.counts = o.recv_counts = s.counts;
        break;
      case Pattern::reduce_scatter:
        o.send = floats(send, s.count);
        o.recv = floats(recv, mine);
        o.counts = s.counts;
        break;
      case Pattern::exchange:
        o.sends = to;
        o.receives = from;
        break;
      case Pattern::barrier: break;
      default:  // reductions
        o.send = floats(send, s.count);
        o.recv = floats(recv, s.count);
    }
    return o;
  }
};

std::span<float> elements(const Buffer& buffer) {
  return {static_cast<float*>(buffer.data), static_cast<std::size_t>(buffer.count)};
}

// As a program calls it.
void call_shoal(Communicator& world, const Operation& o) {
  const std::span<float> in = elements(o.send), out = elements(o.recv);
  constexpr auto sum = comm::Reduction::sum;
  switch (o.pattern) {
    case Pattern::barrier: return world.barrier();
    case Pattern::broadcast: return world.broadcast(out, o.peer);
    case Pattern::reduce: return world.reduce(in, out, sum, o.peer);
    case Pattern::all_reduce: return world.all_reduce(in, out, sum);
    case Pattern::reduce_scatter: return world.reduce_scatter(in, out, o.counts, sum);
    case Pattern::gather: return world.gather(in, out, o.counts, o.peer);
    case Pattern::all_gather: return world.all_gather(in, out, o.counts);
    case Pattern::scatter: return world.scatter(in, out, o.counts, o.peer);
    case Pattern::all_to_all: return world.all_to_all(in, o.counts, out, o.recv_counts);
    case Pattern::scan: return world.scan(in, out, sum);
    case Pattern::exclusive_scan: return world.exclusive_scan(in, out, sum);
    default: return world.exchange(o.sends, o.receives);
  }
}

Side shoal_collective(Communicator& world, Workspace& w, Pattern pattern, const Shape& shape) {
  auto operations = std::make_shared<Operations>(pattern, shape, w.send.data(), w.recv.data());
  const auto run = [&world, operations](std::int64_t rounds) {
    const std::size_t roots = operations->all.size();
    std::size_t root = 0;
    for (std::int64_t i = 0; i < rounds; ++i) {
      call_shoal(world, operations->all[root]);
      if (++root == roots) root = 0;
    }
  };
  return {.name = "Shoal", .run = run, .send = w.send.data(), .recv = w.recv.data()};
}

// Where the library wants operands, else where Shoal's are.
Side empty_side(comm::LibraryCalls& library, Workspace& w) {
  const comm::LibraryCalls::Operands place = library.operands();
  Side side{.name = library.name(), .run = {}, .send = w.send.data(), .recv = w.recv.data()};
  if (place.send) side.send = reinterpret_cast<float*>(place.send);
  if (place.recv) side.recv = reinterpret_cast<float*>(place.recv);
  return side;
}

Side library_collective(comm::LibraryCalls& library, Workspace& w, Pattern pattern, const Shape& shape) {
  Side side = empty_side(library, w);
  const Operations operations(pattern, shape, side.send, side.recv);
  std::vector<std::function<void()>> calls;
  for (const Operation& operation : operations.all) calls.push_back(library.prepare(operation));
  if (!calls.front()) return side;
  side.run = [calls](std::int64_t rounds) {
    std::size_t root = 0;
    for (std::int64_t i = 0; i < rounds; ++i) {
      calls[root]();
      if (++root == calls.size()) root = 0;
    }
  };
  return side;
}

// Rank 0 says something and rank 1 answers; the others look on.
template <class Say, class Hear>
std::function<void(std::int64_t)> ping_pong(Rank rank, Say say, Hear hear) {
  return [=](std::int64_t rounds) mutable {
    if (rank > 1) return;
    for (std::int64_t i = 0; i < rounds; ++i) {
      if (rank == 0) say();
      hear();
      if (rank == 1) say();
    }
  };
}

Side shoal_messages(Communicator& world, Workspace& w, const Shape& s) {
  const std::span<float> out(w.send.data(), static_cast<std::size_t>(s.count));
  const std::span<float> in(w.recv.data(), static_cast<std::size_t>(s.count));
  const Rank peer = 1 - s.rank;
  const auto run = ping_pong(
      s.rank, [=, &world] { world.send(out, peer); }, [=, &world] { world.recv(in, peer); });
  return {.name = "Shoal", .run = run, .calls_per_round = 2, .send = w.send.data(), .recv = w.recv.data()};
}

Side shoal_puts(Workspace& w, const Shape& s) {
  const std::span<float> out(w.send.data(), static_cast<std::size_t>(s.count));
  const Rank peer = 1 - s.rank;
  Side side{.name = "Shoal", .run = {}, .calls_per_round = 2, .send = w.send.data()};
  if (s.rank > 1) {
    side.recv = w.recv.data();
    side.run = [](std::int64_t) {};
    return side;
  }
  // Each waits for the other before it puts again, so one copy of the segment is enough.
  side.recv = w.segments.from(peer).data();
  side.run = ping_pong(
      s.rank, [&w, out, peer] { w.segments.put(peer, 0, out, ++w.sequence); },
      [&w, peer, heard = w.sequence]() mutable { w.segments.wait(peer, ++heard); });
  return side;
}

Side library_messages(comm::LibraryCalls& library, Workspace& w, const Shape& s) {
  Side side = empty_side(library, w);
  side.calls_per_round = 2;
  const Rank peer = s.rank == 0 ? 1 : 0;
  auto say =
      library.prepare({.pattern = Pattern::send, .peer = peer, .tag = 0, .send = floats(side.send, s.count)});
  auto hear =
      library.prepare({.pattern = Pattern::recv, .peer = peer, .tag = 0, .recv = floats(side.recv, s.count)});
  if (say && hear) side.run = ping_pong(s.rank, std::move(say), std::move(hear));
  return side;
}

// Element i of what a rank contributes.
float value(Rank rank, std::int64_t i) { return static_cast<float>((rank + 1) * (i % 7 + 1)); }

// The sum of value(r, i) over the first `ranks` ranks.
float sum(int ranks, std::int64_t i) {
  return static_cast<float>(ranks * (ranks + 1) / 2) * static_cast<float>(i % 7 + 1);
}

// How many elements of `recv` the first call leaves on a rank, and what they are.
struct Expected {
  std::int64_t count = 0;
  std::function<float(std::int64_t i)> at;
};

Expected expected_of(const BenchCase& c, const Shape& s) {
  if (between_a_pair(c.pattern))
    return {s.rank > 1 ? 0 : s.count, [s](std::int64_t i) { return value(1 - s.rank, i); }};
  const auto from_part = [s](std::int64_t i) { return value(static_cast<Rank>(i / s.count), i % s.count); };
  const bool root = s.rank == 0;
  switch (collective(c.pattern).value_or(Pattern::barrier)) {
    case Pattern::broadcast: return {s.count, [](std::int64_t i) { return value(0, i); }};
    case Pattern::reduce: return {root ? s.count : 0, [s](std::int64_t i) { return sum(s.ranks, i); }};
    case Pattern::all_reduce: return {s.count, [s](std::int64_t i) { return sum(s.ranks, i); }};
    case Pattern::reduce_scatter:
      return {s.counts[static_cast<std::size_t>(s.rank)],
              [s](std::int64_t i) { return sum(s.ranks, s.begin_of(s.rank) + i); }};
    case Pattern::gather: return {root ? s.total() : 0, from_part};
    case Pattern::all_gather: return {s.total(), from_part};
    case Pattern::scatter: return {s.count, [s](std::int64_t i) { return value(0, s.rank * s.count + i); }};
    case Pattern::all_to_all:
      return {s.total(), [s](std::int64_t i) {
                return value(static_cast<Rank>(i / s.count), s.rank * s.count + i % s.count);
              }};
    case Pattern::scan: return {s.count, [s](std::int64_t i) { return sum(s.rank + 1, i); }};
    case Pattern::exclusive_scan:  // on rank 0 libraries may leave what they like
      return {root ? 0 : s.count, [s](std::int64_t i) { return sum(s.rank, i); }};
    case Pattern::exchange: return {s.count, [s](std::int64_t i) { return value(s.left(), i); }};
    default: return {};
  }
}

}  // namespace

const std::vector<std::string>& bench_patterns() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const Pattern pattern : collectives) names.emplace_back(comm::to_string(pattern));
    names.insert(names.end(), {"send_recv", "put_signal"});
    return names;
  }();
  return all;
}

bool without_size(const std::string& pattern) { return pattern == comm::to_string(Pattern::barrier); }
bool between_a_pair(const std::string& pattern) { return !collective(pattern); }

std::size_t BenchCase::operand_bytes(int ranks) const {
  if (between_a_pair(pattern)) return bytes;
  switch (*collective(pattern)) {
    case Pattern::gather:
    case Pattern::all_gather:
    case Pattern::scatter:
    case Pattern::all_to_all: return bytes * static_cast<std::size_t>(ranks);
    default: return bytes;
  }
}

Workspace::Workspace(Communicator& world, std::size_t largest_operand, std::size_t largest_message)
    : send(largest_operand / sizeof(float)),
      recv(largest_operand / sizeof(float)),
      segments(world, largest_message / sizeof(float)),
      libraries(comm::library_calls(world, largest_operand)) {}

std::size_t Workspace::footprint(int ranks, std::size_t largest_operand, std::size_t largest_message) {
  return comm::SegmentMemory::footprint(ranks, largest_message) +
         comm::library_calls_footprint(ranks, largest_operand);
}

std::vector<Side> make_sides(Communicator& world, Workspace& w, const BenchCase& bench_case) {
  const Shape shape(bench_case, world.size(), world.rank());
  const std::optional<Pattern> pattern = collective(bench_case.pattern);
  std::vector<Side> sides;
  if (pattern)
    sides.push_back(shoal_collective(world, w, *pattern, shape));
  else if (bench_case.pattern == "send_recv")
    sides.push_back(shoal_messages(world, w, shape));
  else
    sides.push_back(shoal_puts(w, shape));
  for (const auto& library : w.libraries) {
    Side side =
        pattern ? library_collective(*library, w, *pattern, shape) : library_messages(*library, w, shape);
    if (side.run) sides.push_back(std::move(side));
  }
  world.barrier();  // nobody calls before all are prepared
  return sides;
}

void fill_operands(const BenchCase& bench_case, int ranks, Rank rank, float* send, float* recv) {
  const auto count = static_cast<std::int64_t>(bench_case.operand_bytes(ranks) / sizeof(float));
  for (std::int64_t i = 0; i < count; ++i) send[i] = value(rank, i);
  // A broadcast's root sends what it has; all else is to be overwritten.
  const bool sends_recv = bench_case.pattern == comm::to_string(Pattern::broadcast) && rank == 0;
  for (std::int64_t i = 0; i < count; ++i) recv[i] = sends_recv ? value(rank, i) : -1.0f;
}

std::string check_result(const BenchCase& bench_case, int ranks, Rank rank, const float* recv) {
  const Expected expected = expected_of(bench_case, Shape(bench_case, ranks, rank));
  for (std::int64_t i = 0; i < expected.count; ++i)
    if (recv[i] != expected.at(i))
      return fmt::format("element {} is {} instead of {}", i, recv[i], expected.at(i));
  return "";
}

}  // namespace shoal::app
