// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "linop/streaming_copy.h"
#include "shoal/array/distributed_array.h"
#include "shoal/array/simd.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/comm/transport.h"

namespace shoal::bench {
namespace {

// Several sums, so that loads do not wait for additions, and lines that are asked for ahead of them.
SHOAL_CLONES double sum(const double* values, std::size_t count) {
  using array::simd::Doubles;
  constexpr std::size_t lanes = array::simd::lanes, step = 4 * lanes, ahead = 512;
  Doubles a{}, b{}, c{}, d{}, v[4];
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    for (std::size_t line = 0; line < step; line += lanes) __builtin_prefetch(values + i + ahead + line);
    std::memcpy(v, values + i, sizeof v);
    a += v[0], b += v[1], c += v[2], d += v[3];
  }
  a += b, c += d, a += c;
  double total = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) total += a[lane];
  for (; i < count; ++i) total += values[i];
  return total;
}

// Enough for the bandwidth that stands beside what is bound by something else.
constexpr double usual_bytes = 128e6;
// Bandwidth is measured often, and is steady within so many seconds.
constexpr double bandwidth_seconds = 0.06;

}  // namespace

Bench::Bench(comm::Communicator& world, Choice choice) : communicator(world), choice_(std::move(choice)) {}

Quartiles Bench::time(const std::function<void()>& work, int inner) {
  return time(work, inner, choice_.seconds);
}

Quartiles Bench::time(const std::function<void()>& work, int inner, double seconds) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> ms;
  work();
  while (!enough(ms, seconds)) {
    communicator.barrier();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < inner; ++i) work();
    const double mine = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    ms.push_back(communicator.all_reduce(mine, comm::Reduction::max));
  }
  for (double& each : ms) each /= inner;
  return quartiles(std::move(ms));
}

Bench::Bandwidth Bench::bandwidth(double bytes) {
  using Array = array::DistributedArray<double>;
  const auto elements = static_cast<array::Index>(bytes / sizeof(double) / 2);
  const auto layout = array::Layout::split({elements}, communicator.size());
  Array x(communicator, layout), y(communicator, layout);
  x.fill(1);
  const std::span<const double> from = std::as_const(x).local();
  const std::size_t n = from.size();
  double* const to = y.local().data();
  const double copying = std::min(
      time([&] { std::memcpy(to, from.data(), n * sizeof(double)); }, 1, bandwidth_seconds).median_ms,
      time([&] { linop::copy_streaming(from.data(), to, n * sizeof(double)); }, 1, bandwidth_seconds)
          .median_ms);
  double total = 0;
  const Quartiles reading = time([&] { total = sum(from.data(), n) + sum(to, n); }, 1, bandwidth_seconds);
  if (total != 2 * static_cast<double>(n)) fail(ErrorCode::numeric, "the copy is wrong");
  return {bytes / copying * 1e-6, bytes / reading.median_ms * 1e-6};
}

void Bench::report(Line line, const Bandwidth& memory) {
  line.ranks = communicator.size();
  line.transport = communicator.transport().name();
  line.library = communicator.transport().library();
  const double gb_s = line.bytes / line.time.median_ms * 1e-6;
  line.more.insert(line.more.begin(), {{"copy_gb_s", memory.copy_gb_s}, {"read_gb_s", memory.read_gb_s}});
  if (line.bytes > 0) {
    line.more.emplace_back("of_copy", gb_s / memory.copy_gb_s);
    line.more.emplace_back("of_read", gb_s / memory.read_gb_s);
  }
  if (communicator.rank() == 0) print(line);
}

void Bench::memory_case(const std::string& name, double bytes, const std::function<void()>& work) {
  const Bandwidth before = bandwidth(bytes);
  const Quartiles quartiles = time(work);
  const Bandwidth after = bandwidth(bytes);
  report({.name = name, .time = quartiles, .bytes = bytes},
         {(before.copy_gb_s + after.copy_gb_s) / 2, (before.read_gb_s + after.read_gb_s) / 2});
}

void Bench::compute_case(const std::string& name, double flops, double blas_gflop_s,
                         const std::function<void()>& work) {
  Line line{.name = name, .time = time(work), .flops = flops};
  if (blas_gflop_s > 0) {
    line.more.emplace_back("blas_gflop_s", blas_gflop_s);
    line.more.emplace_back("of_blas", flops / line.time.median_ms * 1e-6 / blas_gflop_s);
  }
  report(std::move(line), bandwidth(usual_bytes));
}

void Bench::report(const std::string& name, const Quartiles& time,
                   std::vector<std::pair<std::string, double>> more) {
  report({.name = name, .time = time, .more = std::move(more)}, bandwidth(usual_bytes));
}

int run(int argc, char** argv, std::size_t symmetric_bytes, const std::function<void(Bench&)>& body) {
  comm::JobOptions job{.symmetric_bytes = symmetric_bytes};
  Choice choice;
  CLI::App app("Times cases and prints a line of JSON for each.");
  app.add_option("--transport", job.transport, "threads, mpi, shmem or auto")->capture_default_str();
  app.add_option("--ranks", job.threads, "threads of the transport threads")->capture_default_str();
  app.add_option("--seconds", choice.seconds, "for each case")->capture_default_str();
  app.add_option("cases", choice.cases, "cases: parts of their names (default: all)");
  CLI11_PARSE(app, argc, argv);
  try {
    return comm::run(job, [&](comm::Communicator& communicator) {
      Bench bench(communicator, choice);
      body(bench);
      return 0;
    });
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
}

}  // namespace shoal::bench
