// SPDX-License-Identifier: Apache-2.0
// Post-stack seismic inversion, whole, in four ways.
//
// The impedance model in SHOAL_POSTSTACK_MODEL (an .npz with "model", depth by distance; default: the test
// data's) is thinned to every third trace, repeated 8 times across (SHOAL_POSTSTACK_NY), and modelled to
// data, which is then inverted from a smoothed start. Reports, beside the time, the data misfit and the model
// error. Fails where a stage does not come nearer to the data than its start. The steps are those of
// pylops-mpi's tutorial on this subject.
//
// The stages with a Laplacian are far from converged after 100 steps, and ill-conditioned: rounding grows
// from the 40th step on and moves their figures in the fifth digit, also between numbers of ranks.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "measure.h"
#include "shoal/array/io.h"
#include "shoal/base/error.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/local/poststack.h"
#include "shoal/linop/stacks.h"
#include "shoal/solver/cgls.h"
#include "shoal/solver/proximal/admm.h"
#include "shoal/solver/proximal/functions.h"

namespace {

using namespace shoal;
using namespace shoal::solver;
using array::Index;
using Array = DistributedArray<double>;
using Operator = AnyOperator<double>;
using Line = std::vector<double>;

// The mean of the last k samples, those before the first being equal to it; then backwards.
Line average(const Line& x, std::size_t k) {
  Line y(x.size());
  double sum = static_cast<double>(k) * x.front();
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += x[i] - (i < k ? x.front() : x[i - k]);
    y[i] = sum / static_cast<double>(k);
  }
  std::reverse(y.begin(), y.end());
  return y;
}

// The moving average forwards and backwards, on x continued at both ends by 3 k samples, turned about the
// last one. (scipy: filtfilt(ones(k) / k, 1, x).)
Line smooth(const Line& x, std::size_t k) {
  const std::size_t n = x.size(), pad = 3 * k;
  if (n <= pad)
    fail(ErrorCode::invalid_argument, fmt::format("smoothing by {} needs more than {} samples", k, pad));
  Line longer(n + 2 * pad);
  std::copy(x.begin(), x.end(), longer.begin() + static_cast<std::ptrdiff_t>(pad));
  for (std::size_t i = 1; i <= pad; ++i) {
    longer[pad - i] = 2 * x.front() - x[i];
    longer[pad + n - 1 + i] = 2 * x.back() - x[n - 1 - i];
  }
  const Line both = average(average(longer, k), k);
  const auto begin = both.begin() + static_cast<std::ptrdiff_t>(pad);
  return {begin, begin + static_cast<std::ptrdiff_t>(n)};
}

// nx traces of nz samples.
struct Section {
  Index nx, nz;
  Line values;
  double& at(Index x, Index z) { return values[static_cast<std::size_t>(x * nz + z)]; }
};

Section read_model(const comm::Communicator& world, const std::string& file) {
  const Array model = array::read_npz<double>(file, "model", world, array::replicated_over(world));
  const Index nz = model.layout().shape().at(0), all = model.layout().shape().at(1);
  Section section{(all + 2) / 3, nz, Line(static_cast<std::size_t>((all + 2) / 3 * nz))};
  for (Index x = 0; x < section.nx; ++x)
    for (Index z = 0; z < nz; ++z)
      section.at(x, z) = std::log(model[static_cast<std::size_t>(z * all + 3 * x)]);
  return section;
}

Section smoothed(Section section) {
  for (Index z = 0; z < section.nz; ++z) {
    Line line;
    for (Index x = 0; x < section.nx; ++x) line.push_back(section.at(x, z));
    line = smooth(line, 30);
    for (Index x = 0; x < section.nx; ++x) section.at(x, z) = line[static_cast<std::size_t>(x)];
  }
  for (Index x = 0; x < section.nx; ++x) {
    const auto begin = section.values.begin() + x * section.nz;
    const Line line = smooth(Line(begin, begin + section.nz), 20);
    std::copy(line.begin(), line.end(), begin);
  }
  return section;
}

// The section on every plane that this rank has.
Array repeated(const comm::Communicator& world, const Layout& layout, const Section& section) {
  Array x(world, layout);
  for (std::size_t i = 0; i < x.local().size(); ++i) x[i] = section.values[i % section.values.size()];
  return x;
}

Operator modelling(const comm::Communicator& world, const Layout& layout) {
  const linop::local::PoststackModelling<double> local(layout.block(world.rank()).extent,
                                                       linop::local::ricker(20, 0.004, 15));
  return reshaped(linop::block_diagonal<double>(world, {local}), layout, layout);
}

struct Problem {
  Operator modelling;
  Array model, background, data;

  double misfit(const Array& x) const {
    const Array difference = data - modelling(x);
    return norm(difference) / norm(data);
  }
  double error(const Array& x) const {
    const Array difference = x - model;
    return norm(difference) / norm(model);
  }
};

// One run: a stage takes seconds.
void stage(bench::Bench& bench, const Problem& problem, const std::string& name,
           const std::function<Array()>& invert) {
  if (!bench.wanted(name)) return;
  comm::Communicator& world = bench.communicator;
  world.barrier();
  const auto begin = std::chrono::steady_clock::now();
  const Array x = invert();
  const double mine =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const double ms = world.all_reduce(mine, comm::Reduction::max);
  const double misfit = problem.misfit(x), error = problem.error(x);
  if (!(misfit <= problem.misfit(problem.background)) || !(error <= problem.error(problem.background)))
    fail(ErrorCode::numeric, name + " is no nearer than its start");
  bench.report(name, bench::quartiles({ms}), {{"misfit", misfit}, {"model_error", error}});
}

void invert_in_all_ways(bench::Bench& bench, const Layout& layout, const Problem& problem) {
  comm::Communicator& world = bench.communicator;
  const auto& [b, model, background, data] = problem;
  stage(bench, problem, "post-stack: CGLS 100",
        [&] { return cgls(b, data, background, {.tolerance = 0}).x; });
  const double epsilon = 1e2;
  const Operator laplacian = linop::laplacian<double>(world, layout, {.axes = {0, 1, 2}});
  stage(bench, problem, "post-stack: normal equations, CG 100", [&] {
    const Operator normal = adjoint(b) * b + epsilon * (adjoint(laplacian) * laplacian);
    return cg(normal, b.adjoint_of(data), background, {.tolerance = 0}).x;
  });
  stage(bench, problem, "post-stack: stacked CGLS 100", [&] {
    const Operator system = linop::stacked_vertical<double>({b, std::sqrt(epsilon) * laplacian});
    Array right(world, system.range());
    right.member(0) = data;
    return cgls(system, right, background, {.tolerance = 0}).x;
  });
  stage(bench, problem, "post-stack: ADMM total variation 5x20", [&] {
    const Operator gradient = linop::gradient<double>(world, layout, {.kind = linop::Difference::forward});
    return admm_l2(l1<double>(1e-2), b, data, gradient, background,
                   {.max_iterations = 5, .tau = 0.99 / 12, .inner_iterations = 20})
        .x;
  });
}

std::string environment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value ? value : otherwise;
}

void all(bench::Bench& bench) {
  comm::Communicator& world = bench.communicator;
  const std::string data = environment("SHOAL_TEST_DATA", SHOAL_TEST_DATA) + "/poststack_model.npz";
  const Section section = read_model(world, environment("SHOAL_POSTSTACK_MODEL", data.c_str()));
  const Index ny = std::stol(environment("SHOAL_POSTSTACK_NY", "8"));
  const Layout layout = Layout::split({ny, section.nx, section.nz}, world.size());
  Problem problem{modelling(world, layout), repeated(world, layout, section),
                  repeated(world, layout, smoothed(section)), Array(world, layout)};
  problem.modelling.apply(problem.model, problem.data);
  invert_in_all_ways(bench, layout, problem);
}

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, std::size_t{64} << 20, all); }
