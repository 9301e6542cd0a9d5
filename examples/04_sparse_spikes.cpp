// SPDX-License-Identifier: Apache-2.0
// Deconvolution into spikes: traces that are a few echoes, each blurred by a wavelet, are made sharp again.
//
//   ./04_sparse_spikes --ranks 4           threads; or mpirun -n 4, oshrun -n 4, srun -n 4 in front, and
//                                          --hostfile hosts for a cluster (see 01_hello_ranks.cpp)
//
// The wavelet holds no low and no high frequencies, so many x explain the data d = W x. Least squares takes
// the shortest, which rings. FISTA takes one with a small sum of |x_i|, |d - W x|^2 / 2 + epsilon |x|_1,
// which is one with few spikes.
//
// Picture: data, least squares, FISTA (time runs downwards), and one trace: true spikes (grey), least squares
// (blue), FISTA (orange).
#include <cmath>

#include "picture.h"
#include "shoal/linop/local/convolution.h"
#include "shoal/linop/local/poststack.h"
#include "shoal/linop/stacks.h"
#include "shoal/solver/cgls.h"
#include "shoal/solver/ista.h"
#include "start.h"

using namespace shoal;
using array::DistributedArray;
using array::Index;
using array::Layout;
using examples::say;

constexpr Index traces = 60, samples = 160, half = 24;
constexpr double dt = 0.004, frequency = 22, noise_level = 0.02;

// Five echoes, of which three come later the farther the trace is.
void add_echoes(DistributedArray<double>& x) {
  const array::Block mine = x.layout().block(x.rank());
  for (Index i = 0; i < mine.extent[0]; ++i) {
    const double offset = static_cast<double>(mine.begin[0] + i) / traces;
    const auto put = [&](double sample, double strength) {
      x[static_cast<std::size_t>(i * samples + std::lround(sample))] += strength;
    };
    put(25, 1);
    put(std::hypot(45, 60 * offset), -0.8);
    put(95 - 30 * offset, 0.6);
    put(std::hypot(104, 70 * offset), 0.9);
    put(132, -0.7);
  }
}

void deconvolve(comm::Communicator& world, const examples::Arguments& arguments) {
  // Each rank convolves its own traces: a block diagonal, without communication. Its blocks know elements in
  // a row; reshaped() names them [traces, samples].
  const Layout layout = Layout::split({traces, samples}, world.size());
  const Index mine = layout.block(world.rank()).extent[0];
  const linop::local::Convolve1D<double> wavelet({mine, samples}, linop::local::ricker(half, dt, frequency),
                                                 half);
  const auto w = linop::reshaped(linop::block_diagonal<double>(world, {wavelet}), layout, layout);

  DistributedArray<double> x(world, layout), noise(world, layout);
  add_echoes(x);
  fill_normal(noise, 3);
  const DistributedArray<double> clean = w(x), d = clean + noise_level * noise;
  const auto error = [&](const DistributedArray<double>& estimate) {
    const DistributedArray<double> difference = estimate - x;
    return norm(difference) / norm(x);
  };

  const auto shortest = solver::cgls(w, d, {.max_iterations = 60, .damping = 0.1});
  say(world, "least squares: {} iterations, |d - W x| = {:.3f}, error of x {:.3f}", shortest.iterations,
      shortest.residual_norm, error(shortest.x));

  const double epsilon = 0.03 * norm(w.adjoint_of(d), array::norm_max);  // from there on up, x would be 0
  const auto sparse = solver::fista(w, d, {.max_iterations = 300, .epsilon = epsilon, .tolerance = 1e-5});
  const double spikes = norm(sparse.x, array::norm_zero), all = static_cast<double>(x.size());
  say(world, "FISTA: {} iterations ({}), |d - W x| = {:.3f}, error of x {:.3f}, {:.1f} % of x is not zero",
      sparse.iterations, to_string(sparse.stop), sparse.residual_norm, error(sparse.x), 100 * spikes / all);
  examples::expect(error(sparse.x) < 0.6 * error(shortest.x) && spikes < 0.2 * all,
                   "sparse spikes that are nearer to the true ones than least squares");

  const std::vector<double> data = d.to_full_on(0), least = shortest.x.to_full_on(0),
                            spiky = sparse.x.to_full_on(0), truth = x.to_full_on(0);
  if (world.rank() != 0) return;
  const double end = dt * (samples - 1);
  const auto image = [&](const std::vector<double>& values, double largest, const std::string& title,
                         const std::string& down) {
    return examples::Image{.rows = samples,
                           .columns = traces,
                           .values = examples::transposed(values, traces, samples),
                           .colours = examples::Colours::diverging,
                           .low = -largest,
                           .high = largest,
                           .title = title,
                           .down = {down, 0, end},
                           .right = {"trace", 0, traces - 1}};
  };
  const auto trace = [](const std::vector<double>& values) {
    const auto begin = values.begin() + traces / 3 * samples;
    return std::vector<double>(begin, begin + samples);
  };
  examples::write_picture(arguments.output,
                          {image(data, 1.2, "data", "time (s)"), image(least, 0.8, "least squares", ""),
                           image(spiky, 0.8, "FISTA", ""),
                           examples::Curves{.lines = {trace(least), trace(spiky)},
                                            .reference = trace(truth),
                                            .title = fmt::format("trace {}", traces / 3),
                                            .names = {"least sq.", "FISTA"},
                                            .reference_name = "true",
                                            .up = "x",
                                            .right = {"time (s)", 0, end}}});
}

int main(int argc, char** argv) { return examples::start(argc, argv, deconvolve); }
