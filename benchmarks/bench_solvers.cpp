// SPDX-License-Identifier: Apache-2.0
// The time of an iteration.
//
// Large: CG, in both variants, with the 7-point Laplacian on 300 x 200 x 200 doubles, where memory is what
// counts. Small: CGLS on 32 elements a rank, where communication is. The solvers must find known solutions.
#include <cmath>
#include <string>
#include <vector>

#include "measure.h"
#include "shoal/base/error.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/local/elementwise.h"
#include "shoal/linop/stacks.h"
#include "shoal/solver/cgls.h"

namespace {

using namespace shoal;
using namespace shoal::solver;
using array::Index;

// On arrays that are zero at the border the Laplacian is symmetric and negative definite.
DistributedArray<double> zero_at_the_border(const comm::Communicator& world, const Layout& layout) {
  const array::Shape& n = layout.shape();
  DistributedArray<double> x(world, layout);
  const array::Block block = layout.block(world.rank());
  for (Index at = 0; at < block.size(); ++at) {
    const Index i = block.begin[0] + at / (n[1] * n[2]), j = at / n[2] % n[1], k = at % n[2];
    const bool inside = i > 0 && i < n[0] - 1 && j > 0 && j < n[1] - 1 && k > 0 && k < n[2] - 1;
    x[static_cast<std::size_t>(at)] = inside ? static_cast<double>((i * 7 + j * 3 + k * 5) % 11) - 5 : 0;
  }
  return x;
}

void large(bench::Bench& bench, Variant variant, const std::string& name) {
  if (!bench.wanted(name)) return;
  comm::Communicator& world = bench.communicator;
  const Layout layout = Layout::split({300, 200, 200}, world.size());
  const auto a = linop::laplacian<double>(world, layout, {.axes = {0, 1, 2}});
  const DistributedArray<double> b = a(zero_at_the_border(world, layout));
  auto solver =
      make_cg(a, {.max_iterations = 100000, .tolerance = 0, .variant = variant, .replace_every = 0});
  solver->setup(b);
  const bench::Quartiles time = bench.time([&] { solver->step(); });
  const DistributedArray<double> difference = b - a(solver->result().x);
  const double gap = std::abs(norm(difference) - solver->result().residual_norm);
  if (!(gap < 1e-8 * norm(b)) || !(solver->result().residual_norm < norm(b)))
    fail(ErrorCode::numeric, name + ": the residual is not what it should be");
  bench.report(name, time);
}

void small(bench::Bench& bench, Variant variant, const std::string& name, bool vertical) {
  if (!bench.wanted(name)) return;
  comm::Communicator& world = bench.communicator;
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
    fail(ErrorCode::numeric, name + " does not find the solution");
  auto solver =
      make_cgls(a, {.max_iterations = 1 << 30, .tolerance = 0, .variant = variant, .replace_every = 0});
  // In tens from the start, less the start: beyond convergence a step would do nothing.
  const auto ten = [&] {
    solver->setup(b);
    for (int i = 0; i < 10; ++i) solver->step();
  };
  ten();
  if (solver->result().iterations != 10) fail(ErrorCode::numeric, name + " stopped before ten iterations");
  bench::Quartiles time = bench.time(ten, 100);
  const double setup_ms = bench.time([&] { solver->setup(b); }, 100).median_ms;
  for (double* each : {&time.low_ms, &time.median_ms, &time.high_ms}) *each = (*each - setup_ms) / 10;
  bench.report(name, time);
}

void all(bench::Bench& bench) {
  small(bench, Variant::standard, "CGLS tiny, block diagonal", false);
  small(bench, Variant::pipelined, "CGLS pipelined tiny, block diagonal", false);
  small(bench, Variant::standard, "CGLS tiny, vertical stack", true);
  small(bench, Variant::pipelined, "CGLS pipelined tiny, vertical stack", true);
  large(bench, Variant::standard, "CG, Laplacian");
  large(bench, Variant::pipelined, "CG pipelined, Laplacian");
}

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, std::size_t{16} << 20, all); }
