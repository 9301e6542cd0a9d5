// SPDX-License-Identifier: Apache-2.0
// Derivatives of an array that no rank holds whole.
//
//   ./02_first_derivative --ranks 4        threads; or mpirun -n 4, oshrun -n 4, srun -n 4 in front, and
//                                          --hostfile hosts for a cluster (see 01_hello_ranks.cpp)
//
// first_derivative() is linear: y = D x. Along the split axis each rank needs a row of each neighbour, which
// travels while the inside is computed. Its adjoint D^H is the exact transpose, as inversion needs it.
//
// Picture: a function of two variables, its derivative down and its derivative to the right.
#include <cmath>

#include "picture.h"
#include "shoal/linop/derivatives.h"
#include "start.h"

using namespace shoal;
using array::DistributedArray;
using array::Layout;
using examples::say;

constexpr array::Index rows = 301, columns = 241;
constexpr double step = 0.025;

// Ripples that fade away from the middle: f = cos(5 r) exp(-0.7 r^2).
double ripples(double r) { return std::cos(5 * r) * std::exp(-0.7 * r * r); }
double slope_of_ripples(double r) {
  return (-5 * std::sin(5 * r) - 1.4 * r * std::cos(5 * r)) * std::exp(-0.7 * r * r);
}

// Sets each of this rank's elements to f(u, v), u down and v to the right of the middle.
template <class Function>
void sample(DistributedArray<double>& x, const Function& f) {
  const array::Block mine = x.layout().block(x.rank());
  std::size_t k = 0;
  for (array::Index i = 0; i < mine.extent[0]; ++i)
    for (array::Index j = 0; j < mine.extent[1]; ++j)
      x[k++] = f(step * static_cast<double>(mine.begin[0] + i - rows / 2),
                 step * static_cast<double>(mine.begin[1] + j - columns / 2));
}

void differentiate(comm::Communicator& world, const examples::Arguments& arguments) {
  const Layout layout = Layout::split({rows, columns}, world.size(), 0);
  DistributedArray<double> f(world, layout), expected(world, layout);
  sample(f, [](double u, double v) { return ripples(std::hypot(u, v)); });

  // Five points, and at the ends of the axis fewer (edge). The other axis needs no communication, but the
  // call is the same.
  const linop::FirstDerivative options{.order = 5, .edge = true, .sampling = step};
  const auto down = linop::first_derivative<double>(world, layout, 0, options);
  const auto right = linop::first_derivative<double>(world, layout, 1, options);
  const DistributedArray<double> df_down = down(f), df_right = right(f);

  sample(expected, [](double u, double v) {
    const double r = std::hypot(u, v);
    return r == 0 ? 0 : slope_of_ripples(r) * u / r;
  });
  const DistributedArray<double> difference = df_down - expected;
  const double error = norm(difference) / norm(expected);
  say(world, "derivative down against the formula: relative error {:.1e}", error);

  // <D x, y> = <x, D^H y> for random x and y: the test of every adjoint.
  const linop::DotTest test = dot_test(down);
  say(world, "dot test: <D x, y> = {:.12f}, <x, D^H y> = {:.12f}", test.forward.real(), test.adjoint.real());
  examples::expect(error < 1e-4 && test.passed, "an error under 1e-4 and a dot test that passes");

  const std::vector<double> all = f.to_full_on(0), all_down = df_down.to_full_on(0),
                            all_right = df_right.to_full_on(0);
  const auto image = [](const std::vector<double>& values, const std::string& title) {
    const double end_down = step * (rows / 2), end_right = step * (columns / 2);
    return examples::Image{.rows = rows,
                           .columns = columns,
                           .values = values,
                           .colours = examples::Colours::diverging,
                           .title = title,
                           .down = {"u", -end_down, end_down},
                           .right = {"v", -end_right, end_right}};
  };
  if (world.rank() == 0)
    examples::write_picture(arguments.output,
                            {image(all, "f"), image(all_down, "df / du"), image(all_right, "df / dv")});
}

int main(int argc, char** argv) { return examples::start(argc, argv, differentiate); }
