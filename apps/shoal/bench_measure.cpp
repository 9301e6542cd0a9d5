// SPDX-License-Identifier: Apache-2.0
#include "bench_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::app {
namespace {

using Clock = std::chrono::steady_clock;
using comm::Communicator;
using comm::Rank;

constexpr double block_s = 0.003;  // long against the clock and the start, short against the machine's moods
constexpr int fewest_blocks = 5, most_blocks = 101;
constexpr std::int64_t most_rounds = 1'000'000;
constexpr double largest_change = 1.6;
constexpr std::size_t line = 64;
constexpr std::size_t large_bytes = std::size_t{64} << 20;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double slowest(Communicator& world, double seconds) {
  return world.all_reduce(seconds, comm::Reduction::max);
}

double timed(Communicator& world, const Side& side, std::int64_t rounds) {
  world.barrier();
  const auto start = Clock::now();
  side.run(rounds);
  return seconds_since(start);
}

void check_side(Communicator& world, const BenchCase& c, const Side& side) {
  fill_operands(c, world.size(), world.rank(), side.send, side.recv);
  world.barrier();
  side.run(1);
  comm::agree(world, [&] {
    const std::string wrong = check_result(c, world.size(), world.rank(), side.recv);
    if (!wrong.empty())
      fail(ErrorCode::communication, fmt::format("{} of {} bytes by {} gives a wrong result: {}", c.pattern,
                                                 c.bytes, side.name, wrong));
  });
}

// Rounds of a block, the same on all ranks: whole turns of the root where there are several.
std::int64_t choose_rounds(Communicator& world, const Side& side) {
  std::int64_t rounds = 1;
  double seconds = slowest(world, timed(world, side, rounds));
  while (seconds < block_s / 8 && rounds < most_rounds) {
    rounds *= 4;
    seconds = slowest(world, timed(world, side, rounds));
  }
  const double wanted = block_s / std::max(seconds / static_cast<double>(rounds), 1e-9);
  rounds = std::clamp(static_cast<std::int64_t>(wanted), std::int64_t{1}, most_rounds);
  return rounds > world.size() ? rounds - rounds % world.size() : rounds;
}

int choose_blocks(Communicator& world, const std::vector<Side>& sides, const std::vector<SideResult>& results,
                  double seconds) {
  double all_sides = 0;
  for (std::size_t i = 0; i < sides.size(); ++i)
    all_sides += slowest(world, timed(world, sides[i], results[i].rounds));
  return static_cast<int>(
      std::clamp(seconds / std::max(all_sides, 1e-6), double{fewest_blocks}, double{most_blocks}));
}

void measure_blocks(Communicator& world, const std::vector<Side>& sides, std::vector<SideResult>& results,
                    int blocks) {
  for (int block = 0; block < blocks; ++block)
    for (std::size_t i = 0; i < sides.size(); ++i)
      results[i].us.push_back(timed(world, sides[i], results[i].rounds) * 1e6 /
                              (static_cast<double>(results[i].rounds) * sides[i].calls_per_round));
  for (SideResult& result : results) world.all_reduce(result.us, comm::Reduction::max);
}

}  // namespace

bool flipped(const Probe& before, const Probe& after) {
  const auto changed = [](double a, double b) { return std::max(a, b) > largest_change * std::min(a, b); };
  return changed(before.read_gb_s, after.read_gb_s) ||
         (before.line_ns && after.line_ns && changed(*before.line_ns, *after.line_ns));
}

MachineProbe::MachineProbe(Communicator& world) : world_(world), memory_(world.allocate(footprint)) {
  const Rank me = world.rank();
  const bool reaches = me > 1 || (world.size() > 1 && memory_->direct(1 - me) != nullptr);
  reachable_ = world.all_reduce(reaches ? 1 : 0, comm::Reduction::min) == 1;
  if (me == 0) large_.assign(large_bytes, 0);
}

Probe MachineProbe::measure() {
  std::array<double, 2> numbers{};
  world_.barrier();
  if (reachable_ && world_.rank() < 2) numbers[0] = line_ns();
  if (world_.rank() == 0) numbers[1] = read_gb_s();
  world_.broadcast(numbers, 0);
  return {reachable_ ? std::optional<double>(numbers[0]) : std::nullopt, numbers[1]};
}

// Ranks 0 and 1 count up in turn, each in a line of the other's memory.
double MachineProbe::line_ns() {
  constexpr int batches = 15, trips = 100;
  const Rank me = world_.rank();
  const auto word = [](std::byte* memory) {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(memory + line));
  };
  const auto mine = word(memory_->local()), theirs = word(memory_->direct(1 - me));
  const auto hear = [&] {
    for (int i = 1; mine.load(std::memory_order_acquire) < count_; ++i) {
      if (i % 256 != 0) continue;
      world_.transport().progress();  // throws when the job is ending
      std::this_thread::yield();
    }
  };
  std::vector<double> ns;
  for (int batch = 0; batch < batches; ++batch) {
    const auto start = Clock::now();
    for (int trip = 0; trip < trips; ++trip) {
      ++count_;
      if (me == 0) theirs.store(count_, std::memory_order_release);
      hear();
      if (me == 1) theirs.store(count_, std::memory_order_release);
    }
    ns.push_back(seconds_since(start) * 1e9 / (2 * trips));
  }
  return quartiles(ns).median;
}

double MachineProbe::read_gb_s() const {
  std::vector<double> rates;
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    // A search for what is not there reads as fast as the processor can.
    if (std::memchr(large_.data(), 1, large_.size()) != nullptr)
      fail(ErrorCode::invalid_argument, "the probe's memory has been written to");
    rates.push_back(static_cast<double>(large_.size()) / seconds_since(start) / 1e9);
  }
  return quartiles(rates).median;
}

CaseResult measure_case(Communicator& world, Workspace& workspace, MachineProbe& probe,
                        const BenchCase& bench_case, const Pace& pace) {
  const std::vector<Side> sides = make_sides(world, workspace, bench_case);
  CaseResult result;
  result.bench_case = bench_case;
  for (const Side& side : sides) {
    check_side(world, bench_case, side);
    result.sides.push_back({side.name, pace.rounds > 0 ? pace.rounds : choose_rounds(world, side), {}});
  }
  const int blocks = choose_blocks(world, sides, result.sides, pace.seconds);
  result.before = probe.measure();
  measure_blocks(world, sides, result.sides, blocks);
  result.after = probe.measure();
  result.steady = !flipped(result.before, result.after);
  return result;
}

FrontResult measure_front(Communicator& world, double seconds) {
  const Rank me[] = {world.rank()};
  Communicator alone = world.subset(me);
  // A group of the same kind, of its own: communicators do not show theirs. Its number is far above those
  // that communicators count.
  const comm::Group group{.context = std::uint64_t{1} << 40, .world_rank = {me[0]}, .rank = 0};
  comm::Transport& transport = world.transport();
  transport.open(group);
  std::vector<double> front, submit, added;
  const auto ns_of = [](auto&& call) {
    constexpr int rounds = 1000;
    const auto start = Clock::now();
    for (int i = 0; i < rounds; ++i) call();
    return seconds_since(start) * 1e9 / rounds;
  };
  const auto start = Clock::now();
  while (world.rank() == 0 && (front.size() < fewest_blocks || seconds_since(start) < seconds)) {
    front.push_back(ns_of([&] { alone.barrier(); }));
    submit.push_back(ns_of([&] { transport.submit(group, {.pattern = comm::Pattern::barrier}); }));
    added.push_back(front.back() - submit.back());
  }
  transport.close(group);
  std::vector<double> numbers;
  if (world.rank() == 0)
    for (const std::vector<double>* series : {&front, &submit, &added}) {
      const Quartiles q = quartiles(*series);
      numbers.insert(numbers.end(), {q.low, q.median, q.high});
    }
  numbers.resize(9);
  world.broadcast(numbers, 0);
  const auto at = [&](std::size_t i) { return Quartiles{numbers[i], numbers[i + 1], numbers[i + 2]}; };
  return {at(0), at(3), at(6)};
}

}  // namespace shoal::app
