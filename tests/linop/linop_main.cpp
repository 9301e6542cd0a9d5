// SPDX-License-Identifier: Apache-2.0
// linop_main TRANSPORT RANKS: the operators that communicate, on a transport that a launcher starts, on all
// ranks and on all but the last.
#include <fmt/format.h>

#include <cstdlib>

#include "linop/operator_checks.h"
#include "shoal/linop/convolution_operators.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/fft.h"
#include "shoal/linop/fredholm.h"
#include "shoal/linop/halo.h"
#include "shoal/linop/matrix_product.h"
#include "shoal/linop/mdc.h"
#include "shoal/linop/stacks.h"

namespace {

using namespace shoal;
using namespace shoal::linop;
using namespace shoal::linop::checks;

template <class T>
void run_products(comm::Communicator& communicator) {
  const int ranks = communicator.size();
  const Index n = 11, k = 13, m = 7;
  const Dense<T> full = Dense<T>::numbered(n, k, 1);
  const Dense<T> back = full.conjugate_transpose();
  const auto times = [](const Dense<T>& a, const std::vector<T>& x) {
    Dense<T> operand(a.width, m);
    operand.elements = x;
    return (a * operand).elements;
  };
  const auto expect_product = [&](const AnyOperator<T>& product, const std::string& what) {
    expect_operator<T, T>(
        product, [&](const std::vector<T>& x) { return times(full, x); },
        [&](const std::vector<T>& y) { return times(back, y); }, what);
  };
  for (const std::vector<int>& grid : {std::vector<int>{ranks, 1}, std::vector<int>{1, ranks}}) {
    const auto a = DistributedArray<T>::from_full(communicator, Layout::blocks({n, k}, grid), full.elements);
    expect_product(matrix_product(a, m), "product in shared memory");
    expect_product(matrix_product(a, m, {.share = false, .panel = 2}), "product by messages");
    if (grid[0] == ranks) expect_product(block_product(a, m), "product of rows");
  }
  const auto kernel = random_array<T>(communicator, Layout::split({5, 3, 4}, ranks), 1);
  expect_adjoint(fredholm(kernel, 2), "Fredholm");
  expect_adjoint(fredholm(kernel, 2, Slices::replicated), "Fredholm with replicas");
}

template <class D>
void run_fourier(comm::Communicator& communicator) {
  using C = std::complex<Real<D>>;
  const comm::Communicator self = alone(communicator);
  const int ranks = communicator.size();
  std::vector<Layout> layouts = layouts_of({9, 7, 11}, ranks);
  layouts.push_back(Layout::split({64 * 72}, ranks));
  for (const Layout& layout : layouts)
    for (const FftRange range : {FftRange::natural, FftRange::transposed}) {
      const std::string what = "FFT of " + layout.describe();
      const AnyOperator<D, C> a = Fft<D>(communicator, layout, {.range = range});
      const AnyOperator<D, C> serial = Fft<D>(self, Layout::split(layout.shape(), 1));
      std::vector<D> x;
      const std::vector<C> y = apply_to_random(a, 3, x);
      expect_close(y, serial(DistributedArray<D>::from_full(self, serial.domain(), x)).to_full(), what);
      expect_adjoint(a, what);
    }
  const local::FilterBank<D> bank(Dense<D>::numbered(3, 5, 1).elements, 5, 1, 3);
  expect_adjoint(nonstationary_convolution(communicator, layouts[1], bank, 0), "non-stationary convolution");
  const auto kernel = random_array<C>(communicator, Layout::split({5, 4, 3}, ranks), 1);
  expect_adjoint(mdc(kernel, {.nt = 9, .nv = 2}), "MDC");
}

template <class T>
void run_operators(comm::Communicator& communicator) {
  const int ranks = communicator.size();
  const comm::Communicator self = alone(communicator);
  const Shape shape{9, 7, 11};
  const Layout whole = Layout::split(shape, 1);
  for (const Layout& layout : layouts_of(shape, ranks)) {
    const std::string where = " of " + layout.describe();
    for (int axis = 0; axis < 3; ++axis) {
      const FirstDerivative five{.order = 5, .edge = true};
      const AnyOperator<T> a = first_derivative<T>(communicator, layout, axis, five);
      expect_same_bits(a, first_derivative<T>(self, whole, axis, five), "first derivative" + where);
      expect_adjoint(a, "first derivative" + where);
    }
    const Laplacian all{.axes = {0, 1, 2}, .edge = true};
    expect_same_bits(laplacian<T>(communicator, layout, all), laplacian<T>(self, whole, all),
                     "Laplacian" + where);
    expect_same_bits(gradient<T>(communicator, layout), gradient<T>(self, whole), "gradient" + where);
    expect_adjoint(gradient<T>(communicator, layout), "gradient" + where);
    if (layout.is_replicated()) continue;
    const Halo<T> h = halo<T>(communicator, layout, {2}, Boundary::periodic);
    expect_adjoint(h.extend, "halo" + where);
    expect_adjoint(h.crop * h.extend, "crop and halo" + where);
  }
  run_products<T>(communicator);
  const Index rows = 3 + communicator.rank();
  const AnyOperator<T> vertical =
      vertical_stack<T>(communicator, {Dense<T>::numbered(rows, 6, communicator.rank())});
  expect_adjoint(vertical, "vertical stack");
  expect_adjoint(adjoint(vertical) * vertical, "normal equations");
  check_replicas(vertical.adjoint_of(random_array<T>(communicator, vertical.range(), 1)));
  expect_adjoint(block_diagonal<T>(communicator, {Dense<T>::numbered(rows, 2, 1)}), "block diagonal");
}

int run(comm::Communicator& world, int ranks) {
  if (world.size() != ranks)
    fail(ErrorCode::invalid_argument, fmt::format("{} ranks instead of {}", world.size(), ranks));
  run_operators<double>(world);
  run_operators<std::complex<float>>(world);
  run_fourier<double>(world);
  run_fourier<std::complex<float>>(world);
  std::optional<comm::Communicator> part = world.split(world.rank() + 1 < ranks ? 0 : -1);
  if (part) {
    run_operators<double>(*part);
    run_fourier<double>(*part);
  }
  const int failures = world.all_reduce(testing::Test::HasFailure() ? 1 : 0, comm::Reduction::sum);
  if (world.rank() == 0) fmt::print("linop: {} ranks, {} of them with failures\n", ranks, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string transport = argc > 1 ? argv[1] : "threads";
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 1;
  try {
    return comm::run({.transport = transport, .threads = ranks},
                     [ranks](comm::Communicator& world) { return run(world, ranks); });
  } catch (const std::exception& error) {
    fmt::print(stderr, "linop_main: {}\n", error.what());
    return 1;
  }
}
