// SPDX-License-Identifier: Apache-2.0
// shoal bench comm: one process of the job, or the start of one.
#include "bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "bench_measure.h"
#include "bench_report.h"
#include "commands.h"
#include "launch.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* front_row = "front";  // what is measured beside the patterns: see FrontResult
constexpr int most_attempts = 3;
constexpr double most_extra = 1.4;  // of the time that was asked for, when cases are measured again

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool asked_for(const BenchOptions& o, const std::string& row) {
  return o.patterns.empty() || std::ranges::count(o.patterns, row) > 0;
}

// The cases that are asked for, on `ranks` ranks.
std::vector<BenchCase> bench_cases(const BenchOptions& o, int ranks) {
  std::vector<BenchCase> cases;
  for (const std::string& pattern : bench_patterns()) {
    if (!asked_for(o, pattern) || (ranks < 2 && between_a_pair(pattern))) continue;
    if (without_size(pattern)) {
      cases.push_back({pattern, 0});
      continue;
    }
    for (const std::string& bytes : o.bytes) cases.push_back({pattern, parse_size(bytes, "--bytes")});
  }
  if (cases.empty() && !asked_for(o, front_row))
    fail(ErrorCode::invalid_argument, "--patterns: send_recv and put_signal need two ranks");
  return cases;
}

// The sizes of the memory that all cases share.
struct Sizes {
  Sizes(const std::vector<BenchCase>& cases, int ranks) {
    for (const BenchCase& c : cases) {
      operand = std::max(operand, c.operand_bytes(ranks));
      if (between_a_pair(c.pattern)) message = std::max(message, c.bytes);
    }
  }
  std::size_t operand = sizeof(float), message = sizeof(float);
};

BenchEnvironment environment_of(comm::Communicator& world, const Workspace& workspace) {
  BenchEnvironment e{.transport = std::string(world.transport().name()),
                     .library = world.transport().library(),
                     .ranks = world.size(),
                     .hosts = {},
                     .cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
                     .local_ranks = 0,
                     .baselines = {}};
  for (comm::Rank r = 0; r < world.size(); ++r) {
    if (std::ranges::count(e.hosts, world.host(r)) == 0) e.hosts.push_back(world.host(r));
    if (world.host(r) == world.host(0)) ++e.local_ranks;
  }
  for (const auto& library : workspace.libraries) e.baselines.push_back(library->name());
  return e;
}

// Measures a case, and again where the machine changed meanwhile and there is time left.
CaseResult measure_steadily(comm::Communicator& world, Workspace& workspace, MachineProbe& probe,
                            const BenchCase& bench_case, const Pace& pace,
                            const std::function<bool()>& time_left) {
  for (int attempt = 1;; ++attempt) {
    CaseResult result = measure_case(world, workspace, probe, bench_case, pace);
    result.attempts = attempt;
    const int again = world.rank() == 0 && time_left() ? 1 : 0;
    if (result.steady || attempt == most_attempts || world.all_reduce(again, comm::Reduction::max) == 0)
      return result;
  }
}

void write_json(std::ofstream& file, const BenchOptions& o, const std::string& text) {
  if (o.json == "-") {
    std::fputs(text.c_str(), stdout);
    return;
  }
  file << text << std::flush;
  if (!file) fail(ErrorCode::io, fmt::format("--json {}: {}", o.json, std::strerror(errno)));
}

int job_body(comm::Communicator& world, const BenchOptions& o) {
  const auto start = Clock::now();
  const bool first = world.rank() == 0;
  const bool table = first && o.json != "-";
  const auto show = [&](const std::string& text) {
    if (!table) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  };
  std::ofstream file;
  comm::agree(world, [&] {
    if (!first || o.json.empty() || o.json == "-") return;
    file.open(o.json);
    if (!file) fail(ErrorCode::io, fmt::format("--json {}: {}", o.json, std::strerror(errno)));
  });

  const std::vector<BenchCase> cases = bench_cases(o, world.size());
  const Sizes sizes(cases, world.size());
  Workspace workspace(world, sizes.operand, sizes.message);
  MachineProbe probe(world);
  const BenchEnvironment environment = environment_of(world, workspace);
  show(format_bench_head(environment, probe.measure()));

  const double each = o.seconds / static_cast<double>(cases.size() + 1);
  const auto time_left = [&] { return seconds_since(start) + 2 * each < most_extra * o.seconds; };
  std::vector<CaseResult> results;
  for (const BenchCase& bench_case : cases) {
    results.push_back(measure_steadily(world, workspace, probe, bench_case,
                                       {.seconds = each, .rounds = o.rounds}, time_left));
    show(format_bench_row(environment, results.back()));
  }
  std::optional<FrontResult> front;
  if (asked_for(o, front_row)) front = measure_front(world, std::min(each, 0.5));
  show(format_bench_end(environment, results, front));
  comm::agree(world, [&] {
    if (first && !o.json.empty()) write_json(file, o, format_bench_json(environment, results, front));
  });
  world.barrier();  // nobody gives its memory back before all are done with it
  return 0;
}

}  // namespace

std::string bench_pattern_error(const std::string& word) {
  const std::vector<std::string>& known = bench_patterns();
  if (word == front_row || std::ranges::count(known, word) > 0) return "";
  return fmt::format("'{}' is not a pattern: use {}, {}", word, fmt::join(known, ", "), front_row);
}

std::string bench_bytes_error(const std::string& word) {
  try {
    const std::uint64_t bytes = parse_size(word, "--bytes");
    if (bytes >= sizeof(float) && bytes % sizeof(float) == 0 && bytes <= std::uint64_t{1} << 30) return "";
    return fmt::format("{}: use multiples of {}, the size of a float32, up to 1G", word, sizeof(float));
  } catch (const Error& error) {
    return error.what();
  }
}

int bench_comm_command(const BenchOptions& o, const std::vector<std::string>& arguments) {
  const bool started_plainly = comm::read_launch_environment().launcher.empty();
  const JobPlace place = place_job({.pes = o.pes,
                                    .has_pes = o.has_pes || started_plainly,
                                    .transport = o.transport,
                                    .hostfile = o.hostfile});
  const std::vector<BenchCase> cases = bench_cases(o, place.pes);
  // Yielding makes the library's small messages slower by half: only where it is needed is it fair.
  const bool crowded =
      o.hostfile.empty() && place.pes > static_cast<int>(std::thread::hardware_concurrency());
  if (place.start)
    return launch_job({.command = arguments,
                       .transport = place.transport,
                       .pes = place.pes,
                       .hostfile = o.hostfile,
                       .yields = crowded});
  const Sizes sizes(cases, place.pes);
  const comm::JobOptions job{
      .transport = place.transport,
      .threads = place.pes,
      .symmetric_bytes =
          Workspace::footprint(place.pes, sizes.operand, sizes.message) + MachineProbe::footprint};
  return comm::run(job, [&](comm::Communicator& world) { return job_body(world, o); });
}

}  // namespace shoal::app
