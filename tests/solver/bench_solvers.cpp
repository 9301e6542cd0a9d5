// SPDX-License-Identifier: Apache-2.0
// bench_solvers [TRANSPORT [RANKS]]: the time of an iteration.
//
// Large: CG, in both variants, with the 7-point Laplacian on 300×200×200 doubles, where memory is what
// counts; beside it the fraction of what copying reaches with as many ranks in the same run. Small: CGLS on
// 64 elements, where communication is. Before they are timed, the solvers must find known solutions.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/comm/transport.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/local/elementwise.h"
#include "shoal/linop/stacks.h"
#include "shoal/solver/cgls.h"

namespace {

using namespace shoal;
using namespace shoal::solver;
using array::Index;
using Clock = std::chrono::steady_clock;

struct Timing {
  double median_s, spread;  // spread: (slowest - fastest) / median of the middle half
};

// Of the slowest rank, divided by `repeats`.
template <class Work>
Timing time(comm::Communicator& world, int repeats, const Work& work) {
  std::vector<double> seconds;
  double total = 0;
  while (seconds.size() < 9 || (total < 0.4 && seconds.size() < 200)) {
    world.barrier();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < repeats; ++i) work();
    const double mine = std::chrono::duration<double>(Clock::now() - start).count() / repeats;
    seconds.push_back(world.all_reduce(mine, comm::Reduction::max));
    total += seconds.back() * repeats;
  }
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  return {seconds[n / 2], (seconds[n - 1 - n / 4] - seconds[n / 4]) / seconds[n / 2]};
}

void report(comm::Communicator& world, const std::string& what, const Timing& timing, const char* unit,
            double factor, const std::string& more = "") {
  if (world.rank() != 0) return;
  fmt::print("{:34} {:8.2f} {} (spread {:2.0f} %) {}\n", what, timing.median_s * factor, unit,
             100 * timing.spread, more);
  std::fflush(stdout);
}

// On arrays that are zero at the border the Laplacian is symmetric and negative definite.
void large(comm::Communicator& world, Variant variant, const std::string& name, double copy_s) {
  const Index n0 = 300, n1 = 200, n2 = 200;
  const Layout layout = Layout::split({n0, n1, n2}, world.size());
  const auto a = linop::laplacian<double>(world, layout, {.axes = {0, 1, 2}});
  DistributedArray<double> solution(world, layout);
  const array::Block block = layout.block(world.rank());
  for (Index at = 0; at < block.size(); ++at) {
    const Index i = block.begin[0] + at / (n1 * n2), j = at / n2 % n1, k = at % n2;
    const bool inside = i > 0 && i < n0 - 1 && j > 0 && j < n1 - 1 && k > 0 && k < n2 - 1;
    solution[static_cast<std::size_t>(at)] =
        inside ? static_cast<double>((i * 7 + j * 3 + k * 5) % 11) - 5 : 0;
  }
  const DistributedArray<double> b = a(solution);
  auto solver =
      make_cg(a, {.max_iterations = 100000, .tolerance = 0, .variant = variant, .replace_every = 0});
  solver->setup(b);
  const Timing timing = time(world, 1, [&] { solver->step(); });
  const DistributedArray<double> difference = b - a(solver->result().x);
  const double gap = std::abs(norm(difference) - solver->result().residual_norm);
  if (!(gap < 1e-8 * norm(b)) || !(solver->result().residual_norm < norm(b)))
    fail(ErrorCode::numeric, fmt::format("{}: the residual is {} away from what it should be", name, gap));
  report(world, name, timing, "ms", 1e3,
         fmt::format("{:.1f} times copying an array", timing.median_s / copy_s));
}

double copy_time(comm::Communicator& world) {
  const Layout layout = Layout::split({300, 200, 200}, world.size());
  DistributedArray<double> x(world, layout), y(world, layout);
  x.fill(1);
  const Timing timing = time(world, 1, [&] { y = x; });
  if (y.local().front() != 1 || y.local().back() != 1) fail(ErrorCode::numeric, "the copy is wrong");
  report(world, "copying 300×200×200", timing, "ms", 1e3);
  return timing.median_s;
}

void small(comm::Communicator& world, Variant variant, const std::string& name, bool vertical) {
  std::vector<double> diagonal(32);
  for (std::size_t i = 0; i < diagonal.size(); ++i) diagonal[i] = 1 + 0.01 * static_cast<double>(i);
  const linop::local::Diagonal<double> block(diagonal);
  const auto a = vertical ? linop::vertical_stack<double>(world, {block})
                          : linop::block_diagonal<double>(world, {block});
  DistributedArray<double> solution(world, a.domain());
  fill_normal(solution, 1);
  const DistributedArray<double> b = a(solution);
  const auto result = cgls(a, b, {.tolerance = 1e-12, .variant = variant});
  const DistributedArray<double> error = result.x - solution;
  if (result.stop != Stop::converged || !(norm(error) < 1e-9 * norm(solution)))
    fail(ErrorCode::numeric, fmt::format("{} does not find the solution", name));
  auto solver =
      make_cgls(a, {.max_iterations = 1 << 30, .tolerance = 0, .variant = variant, .replace_every = 0});
  // In batches of 10 from the start: beyond convergence a step would do nothing.
  const auto ten = [&] {
    solver->setup(b);
    for (int i = 0; i < 10; ++i) solver->step();
  };
  ten();
  if (solver->result().iterations != 10) fail(ErrorCode::numeric, name + " stopped before ten iterations");
  const Timing with_setup = time(world, 100, ten);
  const Timing setup = time(world, 100, [&] { solver->setup(b); });
  report(world, name, {(with_setup.median_s - setup.median_s) / 10, with_setup.spread}, "us", 1e6);
}

int run(comm::Communicator& world) {
  if (world.rank() == 0) fmt::print("{} ranks, {}\n", world.size(), world.transport().library());
  small(world, Variant::standard, "cgls, block diagonal", false);
  small(world, Variant::pipelined, "pipelined cgls, block diagonal", false);
  small(world, Variant::standard, "cgls, vertical stack", true);
  small(world, Variant::pipelined, "pipelined cgls, vertical stack", true);
  const double copy_s = copy_time(world);
  large(world, Variant::standard, "cg, Laplacian 300×200×200", copy_s);
  large(world, Variant::pipelined, "pipelined cg, the same", copy_s);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string transport = argc > 1 ? argv[1] : "threads";
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 1;
  try {
    return comm::run({.transport = transport, .threads = ranks}, run);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_solvers: {}\n", error.what());
    return 1;
  }
}
