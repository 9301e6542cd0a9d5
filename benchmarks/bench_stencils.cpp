// SPDX-License-Identifier: Apache-2.0
// Derivatives and halos of a 300 x 200 x 200 array of doubles, split along its first axis. Their bytes count
// every input and output once. The forward is compared with its formula at many places, the adjoint by the
// dot-test, before they are timed.
#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "measure.h"
#include "shoal/base/error.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/halo.h"

namespace {

using namespace shoal;
using namespace shoal::linop;

const Shape shape{300, 200, 200};

double field(Index i, Index j, Index k) {
  return std::sin(0.03 * static_cast<double>(i)) * std::cos(0.05 * static_cast<double>(j)) +
         0.001 * static_cast<double>(k * k);
}

// The expected element of an output's member at a cell in the inside.
using Formula = double (*)(int member, Index i, Index j, Index k);

double three(int, Index i, Index j, Index k) { return (field(i + 1, j, k) - field(i - 1, j, k)) / 2; }
double three_middle(int, Index i, Index j, Index k) { return (field(i, j + 1, k) - field(i, j - 1, k)) / 2; }
double three_last(int, Index i, Index j, Index k) { return (field(i, j, k + 1) - field(i, j, k - 1)) / 2; }
double five(int, Index i, Index j, Index k) {
  return (field(i - 2, j, k) - 8 * field(i - 1, j, k) + 8 * field(i + 1, j, k) - field(i + 2, j, k)) / 12;
}
double three_axes(int, Index i, Index j, Index k) {
  return field(i + 1, j, k) + field(i - 1, j, k) + field(i, j + 1, k) + field(i, j - 1, k) +
         field(i, j, k + 1) + field(i, j, k - 1) - 6 * field(i, j, k);
}
double twice(int, Index i, Index j, Index k) {
  return field(i + 1, j, k) - 2 * field(i, j, k) + field(i - 1, j, k);
}
double slopes(int member, Index i, Index j, Index k) {
  return member == 0 ? three(0, i, j, k) : member == 1 ? three_middle(0, i, j, k) : three_last(0, i, j, k);
}

void check(const std::string& name, const Layout& layout, const DistributedArray<double>& y,
           Formula formula) {
  const array::Block block = layout.block(y.rank());
  const bool stacked = y.layout().is_stack();
  for (int member = 0; member < (stacked ? static_cast<int>(shape.size()) : 1); ++member) {
    const std::span<const double> values = stacked ? y.member(member).local() : y.local();
    for (Index at = 0; at < static_cast<Index>(values.size()); at += 97) {
      const Index i = block.begin[0] + at / (200 * 200), j = at / 200 % 200, k = at % 200;
      const bool inside = i >= 2 && i < 298 && j >= 1 && j < 199 && k >= 1 && k < 199;
      const double expected = inside ? formula(member, i, j, k) : 0;
      if (inside && !(std::abs(values[static_cast<std::size_t>(at)] - expected) < 1e-10))
        fail(ErrorCode::numeric, fmt::format("{}: {} instead of {} at {} {} {}", name,
                                             values[static_cast<std::size_t>(at)], expected, i, j, k));
    }
  }
}

void stencil(bench::Bench& bench, const std::string& name, const AnyOperator<double>& a, Formula formula) {
  if (!bench.wanted(name)) return;
  const Layout& layout = a.domain();
  DistributedArray<double> x(bench.communicator, layout), y(bench.communicator, a.range());
  const array::Block block = layout.block(bench.communicator.rank());
  for (Index at = 0; at < block.size(); ++at)
    x[static_cast<std::size_t>(at)] = field(block.begin[0] + at / (200 * 200), at / 200 % 200, at % 200);
  a.apply(x, y);
  check(name, layout, y, formula);
  if (!dot_test(a).passed) fail(ErrorCode::numeric, name + ": the dot-test fails");
  const double bytes = 8.0 * static_cast<double>(a.domain().size() + a.range().size());
  bench.memory_case(name + ", forward", bytes, [&] { a.apply(x, y); });
  bench.memory_case(name + ", adjoint", bytes, [&] { a.apply_adjoint(y, x); });
}

void halos(bench::Bench& bench, int axis) {
  const std::string name = fmt::format("halo 2, axis {}", axis);
  if (!bench.wanted(name)) return;
  const Layout layout = Layout::split(shape, bench.communicator.size(), axis);
  const Halo<double> h = halo<double>(bench.communicator, layout, {2});
  DistributedArray<double> x(bench.communicator, layout), y(bench.communicator, h.extend.range());
  fill_normal(x, 1);
  DistributedArray<double> back(bench.communicator, layout);
  h.crop.apply(h.extend(x), back);
  if (!std::ranges::equal(x.local(), back.local())) fail(ErrorCode::numeric, "crop does not undo extend");
  if (!dot_test(h.extend).passed) fail(ErrorCode::numeric, name + ": the dot-test fails");
  const double bytes = 8.0 * static_cast<double>(layout.size() + h.extend.range().size());
  bench.memory_case(name + ", forward", bytes, [&] { h.extend.apply(x, y); });
  bench.memory_case(name + ", adjoint", bytes, [&] { h.extend.apply_adjoint(y, x); });
  bench.memory_case(name + ", crop", bytes, [&] { h.crop.apply(y, back); });
}

void all(bench::Bench& bench) {
  const comm::Communicator& world = bench.communicator;
  const Layout layout = Layout::split(shape, world.size());
  stencil(bench, "first derivative 3, axis 0", first_derivative<double>(world, layout, 0), three);
  stencil(bench, "first derivative 3, axis 1", first_derivative<double>(world, layout, 1), three_middle);
  stencil(bench, "first derivative 3, axis 2", first_derivative<double>(world, layout, 2), three_last);
  stencil(bench, "first derivative 5, axis 0", first_derivative<double>(world, layout, 0, {.order = 5}),
          five);
  stencil(bench, "second derivative, axis 0", second_derivative<double>(world, layout, 0), twice);
  stencil(bench, "Laplacian", laplacian<double>(world, layout, {.axes = {0, 1, 2}}), three_axes);
  stencil(bench, "gradient", gradient<double>(world, layout), slopes);
  halos(bench, 0);
  halos(bench, 2);
}

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, std::size_t{64} << 20, all); }
