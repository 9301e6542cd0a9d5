// SPDX-License-Identifier: Apache-2.0
// Post-stack seismic inversion: from reflections back to the acoustic impedance of the layers, in 3-D.
//
//   ./05_poststack_inversion --ranks 4     threads; or mpirun -n 4, oshrun -n 4, srun -n 4 in front, and
//                                          --hostfile hosts for a cluster (see 01_hello_ranks.cpp)
//   ./05_poststack_inversion MODEL.npz     takes `model`, a section [depth, x] of impedances, in place of the
//                                          layers made here
//
// d = W D m: m is the logarithm of the impedance, D its derivative down, W the convolution with a wavelet.
// Each trace is modelled alone; a Laplacian over all three axes, which asks neighbouring ranks, couples them
// in the regularised inversion |d - W D m|^2 + epsilon |Laplacian m|^2.
//
// Picture, the section in the middle: true model, data, background (where both inversions start), least
// squares, regularised.
#include <algorithm>
#include <cmath>

#include "picture.h"
#include "shoal/array/io.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/local/poststack.h"
#include "shoal/linop/stacks.h"
#include "shoal/solver/cgls.h"
#include "start.h"

using namespace shoal;
using array::DistributedArray;
using array::Index;
using array::Layout;
using array::Shape;
using examples::say;

constexpr double noise_level = 0.03;  // of the data's standard deviation
constexpr double dt = 0.004;          // seconds between samples

// Impedance at (y, x, z), each from 0 to 1: folded layers, the right of them thrown down along a fault.
double layered_impedance(double y, double x, double z) {
  const double fault = 0.6 + 0.15 * y, thrown = x > fault ? 0.07 : 0.0;
  const double depth = z - thrown + 0.06 * std::sin(5 * x + 2 * y) - 0.05 * y;
  constexpr double bottoms[] = {0.16, 0.26, 0.34, 0.48, 0.56, 0.70, 0.82};
  constexpr double impedances[] = {3.2, 4.0, 3.5, 4.8, 4.2, 5.6, 5.0, 6.4};
  std::size_t layer = 0;
  while (layer < 7 && depth > bottoms[layer]) ++layer;
  return impedances[layer] + depth;
}

// log(impedance) in [y, x, depth], split along y: so whole traces are on one rank.
DistributedArray<double> layered_model(const comm::Communicator& world) {
  const Shape shape{12, 90, 120};
  DistributedArray<double> m(world, Layout::split(shape, world.size()));
  const array::Block mine = m.layout().block(world.rank());
  std::size_t k = 0;
  for (Index y = mine.begin[0]; y < mine.begin[0] + mine.extent[0]; ++y)
    for (Index x = 0; x < shape[1]; ++x)
      for (Index z = 0; z < shape[2]; ++z)
        m[k++] = std::log(layered_impedance(static_cast<double>(y) / static_cast<double>(shape[0]),
                                            static_cast<double>(x) / static_cast<double>(shape[1]),
                                            static_cast<double>(z) / static_cast<double>(shape[2])));
  return m;
}

// The section of a file, every third trace, for each of 12 y.
DistributedArray<double> model_of_file(const comm::Communicator& world, const std::string& path) {
  const auto section = array::read_npz<double>(path, "model", world, array::replicated_over(world));
  const Shape& shape = section.layout().shape();
  if (shape.size() != 2 || shape[1] < 3 || shape[0] < 3 ||
      std::ranges::any_of(section.local(),
                          [](double impedance) { return !(impedance > 0 && std::isfinite(impedance)); }))
    throw comm::AgreedError(
        ErrorCode::format,
        fmt::format("{}: model {}: expected a section [depth, x] of at least 3 by 3 impedances above 0", path,
                    array::to_string(shape)));
  const Index depth = shape[0], width = shape[1];
  DistributedArray<double> m(world, Layout::split({12, width / 3, depth}, world.size()));
  std::size_t k = 0;
  for (Index y = 0; y < m.local_shape()[0]; ++y)
    for (Index x = 0; x < width / 3; ++x)
      for (Index z = 0; z < depth; ++z)
        m[k++] = std::log(section[static_cast<std::size_t>(z * width + 3 * x)]);
  return m;
}

// The mean of `count` elements `stride` apart around each, as far as there are so many.
void smooth_line(double* line, Index count, Index stride, Index reach) {
  std::vector<double> sums{0};  // of the first i
  for (Index i = 0; i < count; ++i) sums.push_back(sums.back() + line[i * stride]);
  for (Index i = 0; i < count; ++i) {
    const Index begin = std::max<Index>(0, i - reach), end = std::min(count, i + reach + 1);
    line[i * stride] = (sums[static_cast<std::size_t>(end)] - sums[static_cast<std::size_t>(begin)]) /
                       static_cast<double>(end - begin);
  }
}

// What is known before: the model without its details, along x and depth. Local, since only y is split.
DistributedArray<double> background_of(const DistributedArray<double>& m) {
  DistributedArray<double> smooth = m;
  const Shape shape = m.local_shape();
  for (int pass = 0; pass < 2; ++pass)
    for (Index y = 0; y < shape[0]; ++y) {
      double* const section = smooth.local().data() + y * shape[1] * shape[2];
      for (Index x = 0; x < shape[1]; ++x) smooth_line(section + x * shape[2], shape[2], 1, 12);
      for (Index z = 0; z < shape[2]; ++z) smooth_line(section + z, shape[1], shape[2], 10);
    }
  return smooth;
}

examples::Image section_of(const DistributedArray<double>& x, double low, double high,
                           const std::string& title, const std::string& down = "") {
  const std::vector<double> all = x.to_full_on(0);
  if (all.empty()) return {};
  const Shape& shape = x.layout().shape();
  const auto begin = all.begin() + shape[0] / 2 * shape[1] * shape[2];
  const int width = static_cast<int>(shape[1]), depth = static_cast<int>(shape[2]);
  const std::vector<double> section(begin, begin + width * depth);
  return {.rows = depth,
          .columns = width,
          .values = examples::transposed(section, width, depth),
          .low = low,
          .high = high,
          .title = title,
          .down = {down, 0, dt * (depth - 1)},
          .right = {"x", 0, static_cast<double>(width - 1)}};
}

void invert(comm::Communicator& world, const examples::Arguments& arguments) {
  const DistributedArray<double> m =
      arguments.input.empty() ? layered_model(world) : model_of_file(world, arguments.input);
  const Layout& layout = m.layout();
  say(world, "model {}", layout.describe());

  // A block of the block diagonal for the traces of each rank.
  const linop::local::PoststackModelling<double> traces(m.local_shape(), linop::local::ricker(20, dt, 15));
  const auto modelling = linop::reshaped(linop::block_diagonal<double>(world, {traces}), layout, layout);
  DistributedArray<double> noise(world, layout);
  fill_normal(noise, 5);
  const DistributedArray<double> clean = modelling(m);
  const double deviation = norm(clean) / std::sqrt(static_cast<double>(m.size()));
  const DistributedArray<double> d = clean + noise_level * deviation * noise;

  const DistributedArray<double> background = background_of(m);
  const auto error = [&](const DistributedArray<double>& estimate) {
    const DistributedArray<double> difference = estimate - m;
    return norm(difference) / norm(m);
  };
  say(world, "background: error of the model {:.4f}", error(background));

  const auto plain = solver::cgls(modelling, d, background, {.max_iterations = 80});
  say(world, "least squares: {} iterations, |d - W D m| / |d| = {:.4f}, error {:.4f}", plain.iterations,
      plain.residual_norm / norm(d), error(plain.x));

  // The same with a second row of operators below: d stays where it is, and zeros are wanted from the
  // Laplacian.
  const double epsilon = 0.02;
  const auto laplacian = linop::laplacian<double>(world, layout, {.axes = {0, 1, 2}});
  const auto both = linop::stacked_vertical<double>({modelling, std::sqrt(epsilon) * laplacian});
  DistributedArray<double> wanted(world, both.range());
  wanted.member(0) = d;
  const auto smooth = solver::cgls(both, wanted, background, {.max_iterations = 80});
  const DistributedArray<double> misfit = d - modelling(smooth.x);
  say(world, "regularised: {} iterations, |d - W D m| / |d| = {:.4f}, error {:.4f}", smooth.iterations,
      norm(misfit) / norm(d), error(smooth.x));
  examples::expect(plain.residual_norm < 0.2 * norm(d) && norm(misfit) < 0.2 * norm(d),
                   "models that explain the data");
  if (arguments.input.empty())
    examples::expect(error(smooth.x) < 0.7 * error(background) && error(smooth.x) < error(plain.x),
                     "a regularised model that is nearer to the truth than the others");

  const double darkest = norm(m, array::norm_min), brightest = norm(m, array::norm_max);
  const double loudest = 0.6 * norm(d, array::norm_max);
  const std::vector<examples::Panel> panels{section_of(m, darkest, brightest, "true model", "time (s)"),
                                            section_of(d, -loudest, loudest, "data"),
                                            section_of(background, darkest, brightest, "background"),
                                            section_of(plain.x, darkest, brightest, "least squares"),
                                            section_of(smooth.x, darkest, brightest, "regularised")};
  if (world.rank() == 0) examples::write_picture(arguments.output, panels);
}

int main(int argc, char** argv) { return examples::start(argc, argv, invert, "MODEL.npz"); }
