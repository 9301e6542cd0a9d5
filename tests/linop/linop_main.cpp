// SPDX-License-Identifier: Apache-2.0
// linop_main TRANSPORT RANKS: the operators that communicate, on a transport that a launcher starts, for all
// element types, on all ranks and on groups of some: of 6 also 4 and 2, 3 and 3, and each alone.
#include <fmt/format.h>

#include <cstdlib>

#include "linop/operator_checks.h"
#include "shoal/linop/convolution_operators.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/fft.h"
#include "shoal/linop/fredholm.h"
#include "shoal/linop/halo.h"
#include "shoal/linop/local/derivatives.h"
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
  std::vector<std::vector<int>> grids{{ranks, 1}, {1, ranks}};
  if (ranks % 2 == 0) grids.push_back({ranks / 2, 2});
  for (const std::vector<int>& grid : grids) {
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
void run_derivatives(comm::Communicator& communicator) {
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
      const SecondDerivative back{.kind = Difference::backward};
      expect_same_bits(second_derivative<T>(communicator, layout, axis, back),
                       second_derivative<T>(self, whole, axis, back), "second derivative" + where);
    }
    const Laplacian all{.axes = {0, 1, 2}, .edge = true};
    expect_same_bits(laplacian<T>(communicator, layout, all), laplacian<T>(self, whole, all),
                     "Laplacian" + where);
    expect_same_bits(gradient<T>(communicator, layout), gradient<T>(self, whole), "gradient" + where);
    expect_adjoint(gradient<T>(communicator, layout), "gradient" + where);
    const AnyOperator<T> move = redistribution<T>(communicator, layout, Layout::split({7, 99}, ranks, 1));
    expect_same_bits(move, identity<T>(self, whole), "redistribution" + where);
    expect_adjoint(move, "redistribution" + where);
    if (layout.is_replicated()) continue;
    const Halo<T> h = halo<T>(communicator, layout, {2}, Boundary::periodic);
    expect_adjoint(h.extend, "halo" + where);
    expect_same_bits(h.crop * h.extend, identity<T>(self, whole), "crop and halo" + where);
  }
}

// Stacks of blocks of 3 and more rows, against the matrices that they are.
template <class T>
void run_stacks(comm::Communicator& communicator) {
  const auto block_of = [](int rank) { return Dense<T>::numbered(3 + rank % 2, 4, rank); };
  Dense<T> column(0, 4);
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const Dense<T> block = block_of(rank);
    column.height += block.height;
    column.elements.insert(column.elements.end(), block.elements.begin(), block.elements.end());
  }
  const Dense<T> mine = block_of(communicator.rank());
  const AnyOperator<T> vertical = vertical_stack<T>(communicator, {mine});
  expect_matrix(vertical, column, "vertical stack");
  expect_matrix(horizontal_stack<T>(communicator, {mine.transpose()}), column.transpose(),
                "horizontal stack");
  expect_matrix(adjoint(vertical) * vertical, column.conjugate_transpose() * column, "normal equations");
  check_replicas(vertical.adjoint_of(random_array<T>(communicator, vertical.range(), 1)));
  expect_matrix(on_replicas<T>(communicator, block_of(0)), block_of(0), "on replicas");
  expect_matrix(
      stacked_vertical<T>({vertical, T(2) * vertical}),
      [&] {
        Dense<T> both = column;
        both.height *= 2;
        for (const T& element : column.elements) both.elements.push_back(T(2) * element);
        return both;
      }(),
      "stacked vertical");
  expect_adjoint(stacked_horizontal<T>({vertical, vertical}), "stacked horizontal");
  expect_adjoint(stacked_block_diagonal<T>({vertical, adjoint(vertical)}), "stacked block diagonal");

  const Layout layout = Layout::split({5, 6}, communicator.size());
  const AnyLocalOperator<T> along = local::second_derivative<T>(layout.block(communicator.rank()).extent, 1);
  expect_same_bits(reshaped(block_diagonal<T>(communicator, {along}), layout, layout),
                   second_derivative<T>(alone(communicator), Layout::split({5, 6}, 1), 1),
                   "block diagonal of derivatives");
}

// A stack whose widths differ is an error on every rank, which names the rank; all live on.
void run_errors(comm::Communicator& communicator) {
  if (communicator.size() == 1) return;
  const AnyLocalOperator<double> uneven = Dense<double>::numbered(2, communicator.rank() == 1 ? 7 : 5, 1);
  expect_contains(error_of([&] { vertical_stack<double>(communicator, {uneven}); }),
                  {"vertical stack", "5 on rank 0", "7 on rank 1"});
  const auto nine = identity<double>(communicator, Layout::split({9}, communicator.size()));
  const DistributedArray<double> seven(communicator, Layout::split({7}, communicator.size()));
  expect_contains(error_of([&] { (void)nine(seven); }), {"9 split", "7 split"});
}

template <class T>
void run_type(comm::Communicator& communicator) {
  SCOPED_TRACE(fmt::format("{} ranks, {}", communicator.size(), to_string(dtype_of<T>)));
  run_derivatives<T>(communicator);
  run_stacks<T>(communicator);
  run_products<T>(communicator);
  run_fourier<T>(communicator);
}

void run_all(comm::Communicator& communicator) {
  run_type<float>(communicator);
  run_type<double>(communicator);
  run_type<std::complex<float>>(communicator);
  run_type<std::complex<double>>(communicator);
  run_errors(communicator);
}

int run(comm::Communicator& world, int ranks) {
  if (world.size() != ranks)
    fail(ErrorCode::invalid_argument, fmt::format("{} ranks instead of {}", world.size(), ranks));
  run_all(world);
  for (const int first : {4, 3}) {
    if (first >= ranks) continue;
    comm::Communicator part = *world.split(world.rank() < first ? 0 : 1);
    run_all(part);
  }
  comm::Communicator self = alone(world);
  run_all(self);
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
