// SPDX-License-Identifier: Apache-2.0
// Multi-dimensional deconvolution: a wave field that was recorded below a complicated overburden, and what
// would have been recorded without it.
//
//   ./06_multidimensional_deconvolution --ranks 4
//                                          threads; or mpirun -n 4, oshrun -n 4, srun -n 4 in front, and
//                                          --hostfile hosts for a cluster (see 01_hello_ranks.cpp)
//
// Waves go down from each source to each receiver (G, the kernel), and come up again: the data are G
// convolved in time with the reflections x between receivers, summed over receivers. Correlating with G (the
// adjoint) finds the reflections, with false ones for every echo in G; inverting takes the false ones away.
//
// The kernel is given frequency by frequency, [frequencies, sources, receivers], and split along the first
// axis: no rank holds more than its share.
//
// Picture, time downwards from 0, receivers to the right: data, adjoint, inverse, truth.
#include <cmath>
#include <complex>
#include <numbers>

#include "picture.h"
#include "shoal/linop/mdc.h"
#include "shoal/solver/cgls.h"
#include "start.h"

using namespace shoal;
using array::DistributedArray;
using array::Index;
using array::Layout;
using examples::say;
using Complex = std::complex<double>;

constexpr Index times = 201, sources = 45, receivers = 41;  // times: -0.4 s .. 0.4 s
constexpr double dt = 0.004, spacing = 15, velocity = 1800, peak = 20;

// Time of a wave that leaves straight down for `straight` seconds and arrives `offset` metres aside.
double hyperbola(double straight, double offset) { return std::hypot(straight, offset / velocity); }

double place(Index i, Index count) {
  return spacing * (static_cast<double>(i) - static_cast<double>(count - 1) / 2);
}

// The waves that go down: a direct one and two echoes, with the spectrum of a Ricker wavelet.
DistributedArray<Complex> downgoing(const comm::Communicator& world) {
  DistributedArray<Complex> g(world, Layout::split({times / 2 + 1, sources, receivers}, world.size()));
  const array::Block mine = g.layout().block(world.rank());
  std::size_t k = 0;
  for (Index i = mine.begin[0]; i < mine.begin[0] + mine.extent[0]; ++i) {
    const double f = static_cast<double>(i) / (static_cast<double>(times) * dt), ratio = f / peak;
    const double wavelet = ratio * ratio * std::exp(1 - ratio * ratio);
    for (Index s = 0; s < sources; ++s)
      for (Index r = 0; r < receivers; ++r) {
        const double offset = place(s, sources) - place(r, receivers);
        Complex sum = 0;
        for (const auto& [straight, strength] : {std::pair{0.04, 1.0}, {0.11, -0.6}, {0.17, 0.4}})
          sum += strength * std::polar(1.0, -2 * std::numbers::pi * f * hyperbola(straight, offset));
        g[k++] = wavelet * sum;
      }
  }
  return g;
}

// The reflections at each receiver of a wave from the middle one; time 0 is the middle sample.
void add_reflections(DistributedArray<double>& x) {
  const array::Block mine = x.layout().block(x.rank());
  const auto ricker = [](double t) {
    const double a = std::pow(std::numbers::pi * peak * t, 2);
    return (1 - 2 * a) * std::exp(-a);
  };
  std::size_t k = 0;
  for (Index t = 0; t < mine.extent[0]; ++t)
    for (Index r = 0; r < mine.extent[1]; ++r) {
      const double time = dt * static_cast<double>(mine.begin[0] + t - times / 2);
      const double offset = place(mine.begin[1] + r, receivers);
      x[k++] = ricker(time - hyperbola(0.10, offset)) - 0.7 * ricker(time - hyperbola(0.19, offset)) +
               0.5 * ricker(time - hyperbola(0.26, offset));
    }
}

// Samples begin .. begin + 100 of [times, traces, 1], to +- the largest.
examples::Image panel_of(const DistributedArray<double>& x, Index begin, const std::string& title,
                         const std::string& down = "") {
  const std::vector<double> all = x.to_full_on(0);
  if (all.empty()) return {};
  const Index traces = x.layout().shape()[1];
  const auto first = all.begin() + begin * traces;
  const double end = place(traces - 1, traces);
  return {.rows = times / 2,
          .columns = static_cast<int>(traces),
          .values = {first, first + times / 2 * traces},
          .colours = examples::Colours::diverging,
          .title = title,
          .down = {down, 0, dt * (times / 2 - 1)},
          .right = {"offset (m)", -end, end}};
}

void deconvolve(comm::Communicator& world, const examples::Arguments& arguments) {
  const auto g = linop::mdc(downgoing(world), {.nt = times, .nv = 1, .dt = dt, .dr = spacing});
  say(world, "reflections {}, data {}", g.domain().describe(), g.range().describe());

  DistributedArray<double> x(world, g.domain());
  add_reflections(x);
  const DistributedArray<double> d = g(x);

  // How alike two arrays are, whatever their scales: 1 for the same shape.
  const auto likeness = [&](const DistributedArray<double>& y) { return dot(x, y) / (norm(x) * norm(y)); };
  const DistributedArray<double> correlated = g.adjoint_of(d);
  say(world, "adjoint: likeness to the truth {:.3f}", likeness(correlated));
  const auto inverse = solver::cgls(g, d, {.max_iterations = 60, .tolerance = 1e-4});
  say(world, "inverse: {} iterations, |d - G x| / |d| = {:.4f}, likeness {:.3f}", inverse.iterations,
      inverse.residual_norm / norm(d), likeness(inverse.x));
  examples::expect(likeness(inverse.x) > 0.9 && likeness(inverse.x) > likeness(correlated),
                   "an inverse that is like the truth, and more so than the adjoint");

  const std::vector<examples::Panel> panels{
      panel_of(d, 0, "data", "time (s)"), panel_of(correlated, times / 2, "adjoint"),
      panel_of(inverse.x, times / 2, "inverse"), panel_of(x, times / 2, "true reflections")};
  if (world.rank() == 0) examples::write_picture(arguments.output, panels);
}

int main(int argc, char** argv) { return examples::start(argc, argv, deconvolve); }
