// SPDX-License-Identifier: Apache-2.0
// Distributed matrix products and the Fredholm operator. Beside each stands what BLAS alone reaches on each
// rank's share, with as many ranks at once (for the Fredholm operator: on one slice again and again, which
// stays in the caches). Results are compared with closed forms, adjoints by the dot-test.
#include <complex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "measure.h"
#include "shoal/base/error.h"
#include "shoal/linop/fredholm.h"
#include "shoal/linop/local/matrix.h"
#include "shoal/linop/matrix_product.h"

namespace {

using namespace shoal;
using namespace shoal::linop;

// Multiplications and additions of a real product, and of a complex one.
template <class T>
double flops(Index n, Index k, Index m) {
  return (array::is_complex<T> ? 8.0 : 2.0) * static_cast<double>(n) * static_cast<double>(k) *
         static_cast<double>(m);
}

// GFLOP/s of the products of each rank's share of the rows, without anything between ranks.
template <class T>
double blas_rate(bench::Bench& bench, Index n, Index k, Index m) {
  const Index rows = n / bench.communicator.size();
  const local::DenseMatrix<T> a(rows, k, std::vector<T>(static_cast<std::size_t>(rows * k), T(1)), m);
  const std::vector<T> x(static_cast<std::size_t>(k * m), T(2));
  std::vector<T> y(static_cast<std::size_t>(rows * m));
  const bench::Quartiles time = bench.time([&] { a.apply(x, y); });
  if (y.front() != T(static_cast<Real<T>>(2 * k)) || y.back() != y.front())
    fail(ErrorCode::numeric, "the local product is wrong");
  return flops<T>(rows, k, m) * bench.communicator.size() / time.median_ms * 1e-6;
}

// a[i, k] = 1 + i k mod 3, x[k, j] = k + j mod 5: sums of small integers, exact in all types used here.
double a_element(Index i, Index k) { return static_cast<double>(1 + i * k % 3); }
double x_element(Index k, Index j) { return static_cast<double>((k + j) % 5); }

template <class T, class Element>
DistributedArray<T> filled(const comm::Communicator& communicator, const Layout& layout, Element element) {
  DistributedArray<T> x(communicator, layout, array::uninitialised);
  const array::Block block = layout.block(communicator.rank());
  const auto axes = block.extent.size();
  const Index width = block.extent[axes - 1];
  for (Index at = 0; at < block.size(); ++at)
    x[static_cast<std::size_t>(at)] = T(static_cast<Real<T>>(element(
        block.begin[axes - 2] + at / width % block.extent[axes - 2], block.begin[axes - 1] + at % width)));
  return x;
}

// Compares some elements of y = A x.
template <class T>
void check(const std::string& name, const AnyOperator<T>& a, Index inner_size, const DistributedArray<T>& y) {
  const array::Block block = a.range().block(y.rank());
  const auto axes = block.extent.size();
  const Index width = block.extent[axes - 1];
  for (Index at = 0; at < block.size(); at += 9973) {
    const Index i = block.begin[axes - 2] + at / width % block.extent[axes - 2];
    const Index j = block.begin[axes - 1] + at % width;
    double expected = 0;
    for (Index k = 0; k < inner_size; ++k) expected += a_element(i, k) * x_element(k, j);
    if (y[static_cast<std::size_t>(at)] != T(static_cast<Real<T>>(expected)))
      fail(ErrorCode::numeric, fmt::format("{}: wrong at {}, {}", name, i, j));
  }
}

template <class T>
void product(bench::Bench& bench, const std::string& name, const AnyOperator<T>& a, Index inner_size,
             double work, double blas) {
  const auto x = filled<T>(bench.communicator, a.domain(), x_element);
  DistributedArray<T> y(bench.communicator, a.range()), back(bench.communicator, a.domain());
  bench.compute_case(name + ", forward", work, blas, [&] { a.apply(x, y); });
  check(name, a, inner_size, y);
  if (!dot_test(a).passed) fail(ErrorCode::numeric, name + ": the dot-test fails");
  bench.compute_case(name + ", adjoint", work, blas, [&] { a.apply_adjoint(y, back); });
}

// n x n times n x n: SUMMA on all grids of the ranks, with A shared within the host and with panels that are
// sent, and the product of rows.
template <class T>
void products(bench::Bench& bench, const std::string& type, Index n) {
  const comm::Communicator& world = bench.communicator;
  const std::string of = fmt::format("{} {}", n, type);
  double blas = 0;
  const auto run = [&](const std::string& name, const Layout& layout, const auto& make) {
    if (!bench.wanted(name)) return;
    if (blas == 0) blas = blas_rate<T>(bench, n, n, n);
    product<T>(bench, name, make(filled<T>(world, layout, a_element)), n, flops<T>(n, n, n), blas);
  };
  for (int rows = 1; rows <= world.size(); ++rows) {
    if (world.size() % rows != 0) continue;
    const std::vector<int> grid{rows, world.size() / rows};
    const Layout blocks = Layout::blocks({n, n}, grid);
    const std::string where = fmt::format("{}, grid {}x{}", of, grid[0], grid[1]);
    run("SUMMA " + where, blocks, [&](const auto& a) { return matrix_product(a, n); });
    if (world.size() > 1)
      run("SUMMA sent " + where, blocks,
          [&](const auto& a) { return matrix_product(a, n, {.share = false}); });
  }
  run("block product " + of, Layout::split({n, n}, world.size()),
      [&](const auto& a) { return block_product(a, n); });
}

void fredholms(bench::Bench& bench) {
  constexpr Index n = 200, nz = 50;
  for (const Slices slices : {Slices::split, Slices::replicated}) {
    const std::string name = fmt::format("Fredholm, {}", slices == Slices::split ? "split" : "replicated");
    if (!bench.wanted(name)) continue;
    const double blas = blas_rate<double>(bench, n * bench.communicator.size(), n, nz);
    const auto kernel =
        filled<double>(bench.communicator, Layout::split({n, n, n}, bench.communicator.size()), a_element);
    product<double>(bench, name, fredholm(kernel, nz, slices), n, flops<double>(n * n, n, nz), blas);
  }
}

void all(bench::Bench& bench) {
  products<double>(bench, "double", 2048);
  products<std::complex<double>>(bench, "complex", 1024);
  products<std::complex<double>>(bench, "complex", 256);
  fredholms(bench);
}

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, std::size_t{512} << 20, all); }
