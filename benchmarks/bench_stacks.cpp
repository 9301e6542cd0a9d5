// SPDX-License-Identifier: Apache-2.0
// Block diagonal, vertical and horizontal stacks of eight dense 2500 x 2500 matrices, dealt out to the ranks.
// Beside them stands what BLAS alone does: each rank's matrices times vectors, without sums between ranks.
#include <string>
#include <vector>

#include "linop/blas.h"
#include "measure.h"
#include "shoal/base/error.h"
#include "shoal/linop/local/matrix.h"
#include "shoal/linop/stacks.h"

namespace {

using namespace shoal;
using namespace shoal::linop;

constexpr Index blocks = 8, n = 2500;
constexpr double flops = 2.0 * blocks * n * n;

// Of block `b`: rows of equal elements, which are known without a product.
double element(Index b, Index row) { return static_cast<double>(1 + (b + row) % 7); }

std::vector<double> matrix(Index b) {
  std::vector<double> elements(static_cast<std::size_t>(n * n));
  for (Index i = 0; i < n * n; ++i) elements[static_cast<std::size_t>(i)] = element(b, i / n);
  return elements;
}

struct Share {
  Index begin, end;
};

Share share(const comm::Communicator& world) {
  return {blocks * world.rank() / world.size(), blocks * (world.rank() + 1) / world.size()};
}

std::vector<local::DenseMatrix<double>> matrices(const comm::Communicator& world) {
  std::vector<local::DenseMatrix<double>> all;
  for (Index b = share(world).begin; b < share(world).end; ++b) all.emplace_back(n, n, matrix(b));
  return all;
}

// GFLOP/s of all ranks at once.
double blas_rate(bench::Bench& bench, blas::Form form) {
  std::vector<std::vector<double>> all;
  for (Index b = share(bench.communicator).begin; b < share(bench.communicator).end; ++b)
    all.push_back(matrix(b));
  const std::vector<double> x(n, 1);
  std::vector<double> y(n);
  const bench::Quartiles time = bench.time([&] {
    for (const std::vector<double>& a : all)
      blas::gemv<double>(form, n, n, 1, a.data(), n, x.data(), 0, y.data());
  });
  return flops / time.median_ms * 1e-6;
}

using Blocks = std::vector<AnyLocalOperator<double>>;
using Stack = AnyOperator<double> (*)(const comm::Communicator&, Blocks);

// `sums`: y is the sum of all products.
void stack(bench::Bench& bench, const std::string& name, Stack make, bool sums = false) {
  if (!bench.wanted(name)) return;
  const double forward = blas_rate(bench, blas::Form::plain), adjoint = blas_rate(bench, blas::Form::adjoint);
  Blocks parts;
  for (auto& each : matrices(bench.communicator)) parts.emplace_back(each);
  const AnyOperator<double> a = make(bench.communicator, std::move(parts));
  DistributedArray<double> x(bench.communicator, a.domain()), y(bench.communicator, a.range());
  x.fill(1);
  a.apply(x, y);
  double expected = 0;
  for (Index b = 0; b < blocks; ++b)
    if (sums || b == share(bench.communicator).begin) expected += n * element(b, 0);
  if (y.local().front() != expected) fail(ErrorCode::numeric, name + ": the product is wrong");
  if (!dot_test(a).passed) fail(ErrorCode::numeric, name + ": the dot-test fails");
  bench.compute_case(name + ", forward", flops, forward, [&] { a.apply(x, y); });
  bench.compute_case(name + ", adjoint", flops, adjoint, [&] { a.apply_adjoint(y, x); });
}

void all(bench::Bench& bench) {
  stack(bench, "block diagonal", block_diagonal<double>);
  stack(bench, "vertical stack", vertical_stack<double>);
  stack(bench, "horizontal stack", horizontal_stack<double>, true);
}

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, std::size_t{64} << 20, all); }
