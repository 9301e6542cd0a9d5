// SPDX-License-Identifier: Apache-2.0
// Least-squares migration: an image of reflectors below the ground from echoes at the surface.
//
//   ./07_least_squares_migration --ranks 4 threads; or mpirun -n 4, oshrun -n 4, srun -n 4 in front, and
//                                          --hostfile hosts for a cluster (see 01_hello_ranks.cpp)
//
// Kirchhoff modelling: every point of the image sends the wave of a source on to every receiver. So for each
// source the echoes are a spreading along travel times, and then a convolution with the wavelet. The adjoint
// collects them again, which is migration; its image is uneven and blurred. The image whose echoes fit best
// is sharper.
//
// Each rank has some of the sources: a vertical stack of local operators. All work on one image, which every
// rank holds; the adjoint sums up what all sources say of it.
//
// Picture: true reflectors, migration, least squares.
#include <cmath>

#include "picture.h"
#include "shoal/linop/local/algebra.h"
#include "shoal/linop/local/convolution.h"
#include "shoal/linop/local/poststack.h"
#include "shoal/linop/local/spread.h"
#include "shoal/linop/stacks.h"
#include "shoal/solver/cgls.h"
#include "start.h"

using namespace shoal;
using array::DistributedArray;
using array::Index;
using array::Layout;
using examples::say;
using linop::AnyLocalOperator;

constexpr Index width = 81, depth = 60, sources = 12, receivers = 41, samples = 220, half = 20;
constexpr double step = 8, velocity = 2000, dt = 0.004, frequency = 22;

// `count` places along the surface.
std::vector<linop::local::Position> line_of(Index count) {
  std::vector<linop::local::Position> places;
  for (Index i = 0; i < count; ++i)
    places.push_back({step * (width - 1) * static_cast<double>(i) / static_cast<double>(count - 1), 0});
  return places;
}

// From an image [width, depth] to the echoes [receivers, samples] of one source.
AnyLocalOperator<double> shot(const linop::local::Position& source) {
  const auto places = line_of(receivers);
  const linop::local::Spread<double> spread(
      width * depth, receivers, samples,
      linop::local::travel_times(width, depth, step, source, places, velocity, dt));
  const linop::local::Convolve1D<double> wavelet({receivers, samples},
                                                 linop::local::ricker(half, dt, frequency), half);
  return linop::local::product<double>(wavelet, spread);
}

// A flat reflector, a dipping one and a bowl; the same on every rank, which holds the whole image.
void add_reflectors(DistributedArray<double>& m) {
  for (Index x = 0; x < width; ++x) {
    const double across = static_cast<double>(x) / (width - 1);
    const auto put = [&](double z, double strength) {
      m[static_cast<std::size_t>(x * depth + std::lround(z))] = strength;
    };
    put(16, 1);
    put(24 + 12 * across, -0.8);
    put(44 + 8 * std::cos(6.28 * across) * across, 0.9);
  }
}

void migrate(comm::Communicator& world, const examples::Arguments& arguments) {
  const auto places = line_of(sources);
  const array::Block mine = Layout::split({sources}, world.size()).block(world.rank());
  std::vector<AnyLocalOperator<double>> shots;
  for (Index s = mine.begin[0]; s < mine.begin[0] + mine.extent[0]; ++s)
    shots.push_back(shot(places[static_cast<std::size_t>(s)]));
  const auto modelling = linop::vertical_stack<double>(world, shots);
  say(world, "image {}, echoes {}", modelling.domain().describe(), modelling.range().describe());

  DistributedArray<double> m(world, modelling.domain());
  add_reflectors(m);
  const DistributedArray<double> echoes = modelling(m);

  // How alike two images are, whatever their scales: 1 for the same shape.
  const auto likeness = [&](const DistributedArray<double>& image) {
    return dot(m, image) / (norm(m) * norm(image));
  };
  const DistributedArray<double> migrated = modelling.adjoint_of(echoes);
  say(world, "migration: likeness to the reflectors {:.3f}", likeness(migrated));
  const auto best = solver::cgls(modelling, echoes, {.max_iterations = 60});
  say(world, "least squares: {} iterations, residual {:.4f} of the echoes, likeness {:.3f}", best.iterations,
      best.residual_norm / norm(echoes), likeness(best.x));
  examples::expect(best.residual_norm < 0.05 * norm(echoes) && likeness(best.x) > 1.2 * likeness(migrated),
                   "an image that explains the echoes, and is more like the reflectors than migration's");

  const auto panel = [](const DistributedArray<double>& image, const std::string& title) {
    const std::vector<double> values(image.local().begin(), image.local().end());
    return examples::Image{.rows = depth,
                           .columns = width,
                           .values = examples::transposed(values, width, depth),
                           .title = title,
                           .down = {"depth (m)", 0, step * (depth - 1)},
                           .right = {"x (m)", 0, step * (width - 1)}};
  };
  if (world.rank() == 0)
    examples::write_picture(arguments.output, {panel(m, "true reflectors"), panel(migrated, "migration"),
                                               panel(best.x, "least squares")});
}

int main(int argc, char** argv) { return examples::start(argc, argv, migrate); }
