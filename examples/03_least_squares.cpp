// SPDX-License-Identifier: Apache-2.0
// Least squares: more measurements than one rank holds, of unknowns that every rank holds.
//
//   ./03_least_squares --ranks 4           threads; or mpirun -n 4, oshrun -n 4, srun -n 4 in front, and
//                                          --hostfile hosts for a cluster (see 01_hello_ranks.cpp)
//
// 240 blurred, noisy readings of a curve of 120 points: b = A x + noise, each row of A an average around some
// place. Blurring loses detail, and undoing it blows the noise up. Damping, |b - A x|^2 + damping^2 |x|^2,
// holds it down.
//
// Picture. Left: the curve (grey), least squares without damping (blue) and with (orange). Right: log10 of
// what each makes small, after each iteration.
#include <cmath>

#include "picture.h"
#include "shoal/linop/local/matrix.h"
#include "shoal/linop/stacks.h"
#include "shoal/solver/cgls.h"
#include "start.h"

using namespace shoal;
using array::DistributedArray;
using array::Index;
using array::Layout;
using examples::say;

constexpr Index readings = 240, points = 120;
constexpr double blur = 0.025, noise_level = 0.01;

// Rows begin .. begin + count - 1 of A, each a Gaussian average that sums up to 1.
linop::local::DenseMatrix<double> blurring_rows(Index begin, Index count) {
  std::vector<double> elements;
  for (Index row = begin; row < begin + count; ++row) {
    const double place = static_cast<double>(row) / (readings - 1);
    std::vector<double> weights;
    double sum = 0;
    for (Index j = 0; j < points; ++j) {
      const double distance = (static_cast<double>(j) / (points - 1) - place) / blur;
      sum += weights.emplace_back(std::exp(-distance * distance / 2));
    }
    for (const double w : weights) elements.push_back(w / sum);
  }
  return {count, points, elements};
}

// A bump, a box and a slope.
double curve(double t) {
  const double bump = std::exp(-std::pow((t - 0.25) / 0.07, 2)), box = t > 0.5 && t < 0.65 ? 0.7 : 0.0;
  return bump + box + (t > 0.75 ? 2 * (t - 0.75) : 0.0);
}

std::vector<double> log10_of(std::vector<double> values) {
  for (double& v : values) v = std::log10(v);
  return values;
}

void invert(comm::Communicator& world, const examples::Arguments& arguments) {
  // Each rank makes the rows that it owns. A vertical stack takes x whole on every rank (replicated) and
  // leaves the readings where their rows are (split).
  const Layout mine = Layout::split({readings}, world.size());
  const array::Block rows = mine.block(world.rank());
  const auto a = linop::vertical_stack<double>(world, {blurring_rows(rows.begin[0], rows.extent[0])});

  DistributedArray<double> x(world, a.domain()), noise(world, a.range());
  for (std::size_t i = 0; i < x.local().size(); ++i) x[i] = curve(static_cast<double>(i) / (points - 1));
  fill_normal(noise, 7);  // depends on the global index alone: the same on any number of ranks
  const DistributedArray<double> clean = a(x), b = clean + noise_level * noise;

  std::vector<std::vector<double>> curves, residuals;
  std::vector<double> errors;
  const std::vector<double> truth = x.to_full();
  for (const double damping : {0.0, 0.07}) {
    const auto result = solver::cgls(a, b, {.max_iterations = 60, .tolerance = 1e-8, .damping = damping});
    const DistributedArray<double> difference = result.x - x;
    errors.push_back(norm(difference) / norm(x));
    say(world, "damping {:<4}: {} iterations ({}), |b - A x| = {:.4f}, error of x {:.3f}", damping,
        result.iterations, to_string(result.stop), result.residual_norm, errors.back());
    curves.push_back(result.x.to_full());
    residuals.push_back(log10_of(result.history));

    // At the minimum the gradient A^H (b - A x) - damping^2 x vanishes.
    const DistributedArray<double> misfit = b - a(result.x);
    const DistributedArray<double> gradient = a.adjoint_of(misfit) - damping * damping * result.x;
    if (damping > 0) examples::expect(norm(gradient) < 1e-5, "a vanishing gradient");
  }
  examples::expect(errors[1] < 0.2 && errors[1] < errors[0], "a better curve with damping than without");
  const std::vector<std::string> names{"undamped", "damped"};
  if (world.rank() == 0)
    examples::write_picture(arguments.output, {examples::Curves{.lines = curves,
                                                                .reference = truth,
                                                                .title = "the curve",
                                                                .names = names,
                                                                .reference_name = "true",
                                                                .up = "x",
                                                                .right = {"place", 0, 1}},
                                               examples::Curves{.lines = residuals,
                                                                .title = "log10 of what is made small",
                                                                .names = names,
                                                                .up = "log10",
                                                                .right = {"iterations", 0, 60}}});
}

int main(int argc, char** argv) { return examples::start(argc, argv, invert); }
