// SPDX-License-Identifier: Apache-2.0
// failing TRANSPORT RANKS EVENT WHO: a job in which EVENT happens to rank WHO. What is expected of each is in
// test_failures.cpp and test_faults.cpp.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/comm/symmetric_segments.h"
#include "shoal/comm/transport.h"

using namespace shoal;
using namespace std::chrono_literals;

namespace {

constexpr int rounds = 40;

// What a program does all day: sums, a put to the right, a barrier. Calls `event` on rank `who` half-way.
// Returns a number that depends on every message.
template <class Event>
std::int64_t work(comm::Communicator& world, int who, int turns, Event&& event) {
  comm::SymmetricSegments<std::int64_t> segments(world, 1);
  const int right = (world.rank() + 1) % world.size(),
            left = (world.rank() + world.size() - 1) % world.size();
  std::int64_t value = world.rank() + 1;
  for (int turn = 1; turn <= turns; ++turn) {
    if (turn == rounds / 2 && world.rank() == who) event();
    value = world.all_reduce(value * (world.rank() + 2), comm::Reduction::sum) % 1'000'003;
    segments.put(right, 0, View<const std::int64_t>(&value, 1), static_cast<std::uint64_t>(turn));
    segments.wait(left, static_cast<std::uint64_t>(turn));
    value = segments.from(left)[0] + world.rank();
    world.barrier();
  }
  return value;
}

// Stops this process, and lets a child wake it after two seconds.
void pause_for_a_while() {
  const pid_t me = getpid();
  if (fork() == 0) {
    sleep(2);
    kill(me, SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
}

int print_result(comm::Communicator& world, std::int64_t value) {
  const std::int64_t sum = world.all_reduce(value, comm::Reduction::sum);
  if (world.rank() == 0) fmt::print("result {}\n", sum);
  return 0;
}

int work_with_event(comm::Communicator& world, const std::string& what, int who) {
  const std::map<std::string, void (*)()> events = {
      {"work", [] {}},
      {"kill", [] { raise(SIGKILL); }},
      {"terminate", [] { raise(SIGTERM); }},
      {"stop", [] { raise(SIGSTOP); }},
      {"pause", pause_for_a_while},
      {"throw", [] { throw std::runtime_error("the sky is falling"); }},
      {"exit", [] { std::exit(3); }},
      {"hang", [] { std::this_thread::sleep_for(60s); }},
  };
  const auto event = events.find(what);
  if (event == events.end()) fail(ErrorCode::invalid_argument, "what is " + what);
  return print_result(world, work(world, who, rounds, event->second));
}

// Works until somebody ends it; says so first.
int work_for_ever(comm::Communicator& world) {
  work(world, -1, 1, [] {});
  if (world.rank() == 0) {
    fmt::print("ready\n");
    std::fflush(stdout);
  }
  work(world, -1, 1'000'000'000, [] {});
  return 0;
}

// Rank `who` hands on what the one before it sends, and stops doing so: everybody behind it waits in turn.
int pipeline(comm::Communicator& world, int who) {
  comm::SymmetricSegments<int> segments(world, 1);
  const int next = (world.rank() + 1) % world.size(),
            previous = (world.rank() + world.size() - 1) % world.size();
  for (std::uint64_t turn = 1;; ++turn) {
    if (world.rank() == 0) segments.signal(next, turn);
    if (world.rank() == 0)
      segments.wait(previous, turn);
    else
      segments.wait_forever(previous, turn);
    if (turn == 20 && world.rank() == who) raise(SIGSTOP);
    if (world.rank() != 0) segments.signal(next, turn);
  }
}

// Large data goes round for ever, most of it copied by both sides. Rank `who` has a child that sends it
// `signal` meanwhile.
int copy_for_ever(comm::Communicator& world, int who, int signal) {
  const pid_t me = getpid();
  if (world.rank() == who && fork() == 0) {
    std::this_thread::sleep_for(300ms);
    kill(me, signal);
    _exit(0);
  }
  const int size = world.size(), left = (world.rank() + size - 1) % size;
  std::vector<float> data(std::size_t{1} << 18), all(data.size() * static_cast<std::size_t>(size));
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(size), std::int64_t{1} << 18);
  for (int root = 0;; root = (root + 1) % size) {
    if (world.rank() == root) world.send(data, (root + 1) % size);
    if (left == root) world.recv(data, left);
    world.broadcast(data, root);
    world.gather(data, all, counts, root);
    world.scatter(all, data, counts, root);
    world.all_reduce(data, comm::Reduction::max);
  }
}

// Of this rank alone, also where ranks are threads.
double processor_seconds(const comm::Communicator& world) {
  rusage usage{};
  getrusage(world.transport().name() == "threads" ? RUSAGE_THREAD : RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Everybody waits in a barrier for rank `who`: prints the largest share of a processor that this takes.
int idle(comm::Communicator& world, int who, std::chrono::seconds time) {
  world.barrier();
  const double before = processor_seconds(world);
  if (world.rank() == who) std::this_thread::sleep_for(time);
  world.barrier();
  const double share = (processor_seconds(world) - before) / static_cast<double>(time.count());
  const double largest = world.all_reduce(share, comm::Reduction::max);
  if (world.rank() == 0) fmt::print("{:.1f} % of a processor\n", 100 * largest);
  return largest < 0.05 ? 0 : 1;
}

int barriers(comm::Communicator& world) {
  world.barrier();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) world.barrier();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  if (world.rank() == 0) fmt::print("{:.2f} s\n", time.count());
  return time < 10s ? 0 : 1;
}

// What a program may keep in static objects, and that dies after the job has ended.
struct Kept {
  std::optional<comm::Communicator> world, half;
  std::optional<comm::SymmetricSegments<double>> segments;
  comm::Request request;
};

int keep(comm::Communicator& world) {
  static Kept kept;
  if (world.rank() != 0 && world.transport().name() == "threads") {
    const comm::Communicator other = *world.split(world.rank() % 2, 0);
    const comm::SymmetricSegments<double> segments(world, 10);
    world.barrier();
    return 0;
  }
  kept.world = world;
  kept.half = *world.split(world.rank() % 2, 0);
  kept.segments.emplace(world, 10);
  kept.request = world.barrier_async();
  kept.request.wait();
  return 0;
}

int body(comm::Communicator& world, const std::string& what, int who) {
  const bool me = world.rank() == who;
  if (what == "nothing") {
    world.barrier();
  } else if (what == "agree") {
    comm::agree(world, [&] {
      if (me) fail(ErrorCode::io, "the disk is full");
    });
  } else if (what == "length") {
    const int peer = (who + 1) % world.size();
    if (me) world.send(std::vector<double>(3), peer);
    std::vector<double> data(2);
    if (world.rank() == peer) world.recv(data, who);
    world.barrier();
  } else if (what == "heap") {
    comm::SymmetricSegments<double> segments(world, std::size_t{1} << 40);
  } else if (what == "small-heap") {
    comm::SymmetricSegments<std::byte> segments(
        world, (std::size_t{2} << 20) / static_cast<std::size_t>(world.size()));
  } else if (what == "unequal") {
    comm::SymmetricSegments<double> segments(world, me ? 10 : 20);
  } else if (what == "return") {
    work(world, -1, 3, [] {});
    if (me) return 3;
    work(world, -1, rounds, [] {});
  } else if (what == "leave") {
    comm::SymmetricSegments<double> segments(world, 1);
    if (!me) segments.wait(who, 1);
  } else if (what == "deadlock") {
    comm::SymmetricSegments<double> segments(world, 1);
    segments.wait((world.rank() + 1) % world.size(), 1);
  } else if (what == "pipeline") {
    return pipeline(world, who);
  } else if (what == "for-ever") {
    return work_for_ever(world);
  } else if (what == "copies-kill" || what == "copies-stop") {
    return copy_for_ever(world, who, what == "copies-kill" ? SIGKILL : SIGSTOP);
  } else if (what == "idle") {
    return idle(world, who, 3s);
  } else if (what == "barriers") {
    return barriers(world);
  } else if (what == "keep") {
    return keep(world);
  } else {
    return work_with_event(world, what, who);
  }
  return 0;
}

}  // namespace

int main(int, char** argv) {
  const std::string what = argv[3];
  comm::JobOptions options{.transport = argv[1], .threads = std::atoi(argv[2])};
  options.symmetric_bytes = std::size_t{1} << 20;
  try {
    if (what == "twice")
      comm::run(options, [](comm::Communicator& world) { return body(world, "nothing", 0); });
    return comm::run(options, [&](comm::Communicator& world) {
      return body(world, what == "twice" ? "nothing" : what, std::atoi(argv[4]));
    });
  } catch (const comm::AgreedError& error) {
    if (comm::read_launch_environment().rank == 0) fmt::print(stderr, "shoal: {}\n", error.what());
  } catch (const std::exception& error) {
    fmt::print(stderr, "shoal: {}\n", error.what());
  }
  return 3;
}
