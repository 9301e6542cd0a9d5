// SPDX-License-Identifier: Apache-2.0
// bench_matrices [TRANSPORT [RANKS]]: distributed matrix products and the Fredholm operator. Beside each rate
// the fraction of what BLAS alone reaches on each rank's share, with as many ranks at once, in the same run
// (for the Fredholm operator: on one slice again and again, which stays in the caches). Results are compared
// with closed forms, adjoints by the dot-test, before they are timed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/linop/fredholm.h"
#include "shoal/linop/local/matrix.h"
#include "shoal/linop/matrix_product.h"

namespace {

using namespace shoal;
using namespace shoal::linop;
using Clock = std::chrono::steady_clock;

// Of the slowest rank.
struct Timing {
  double median_s, spread;  // spread: (slowest - fastest) / median of the middle half
};

template <class Work>
Timing time(comm::Communicator& communicator, Work work) {
  std::vector<double> seconds;
  double total = 0;
  work();
  while (seconds.size() < 7 || (total < 0.5 && seconds.size() < 200)) {
    communicator.barrier();
    const Clock::time_point start = Clock::now();
    work();
    const double mine = std::chrono::duration<double>(Clock::now() - start).count();
    seconds.push_back(communicator.all_reduce(mine, comm::Reduction::max));
    total += seconds.back();
  }
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  return {seconds[n / 2], (seconds[n - 1 - n / 4] - seconds[n / 4]) / seconds[n / 2]};
}

// Multiplications and additions of a real product, and of a complex one.
template <class T>
double flops(Index n, Index k, Index m) {
  return (array::is_complex<T> ? 8.0 : 2.0) * static_cast<double>(n) * static_cast<double>(k) *
         static_cast<double>(m);
}

// Of the products of each rank's share of the rows, without anything between ranks.
template <class T>
double blas_rate(comm::Communicator& communicator, Index n, Index k, Index m) {
  const Index rows = n / communicator.size();
  const local::DenseMatrix<T> a(rows, k, std::vector<T>(static_cast<std::size_t>(rows * k), T(1)), m);
  const std::vector<T> x(static_cast<std::size_t>(k * m), T(2));
  std::vector<T> y(static_cast<std::size_t>(rows * m));
  const Timing timing = time(communicator, [&] { a.apply(x, y); });
  if (y.front() != T(static_cast<Real<T>>(2 * k)) || y.back() != y.front())
    fail(ErrorCode::numeric, "the local product is wrong");
  return flops<T>(rows, k, m) * communicator.size() / timing.median_s;
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

struct Bench {
  comm::Communicator& communicator;

  template <class T>
  void product(const std::string& name, const AnyOperator<T>& a, Index k, double blas) const {
    const auto x = filled<T>(communicator, a.domain(), x_element);
    DistributedArray<T> y(communicator, a.range());
    const Timing forward = time(communicator, [&] { a.apply(x, y); });
    const array::Block block = a.range().block(communicator.rank());
    for (Index at = 0; at < block.size(); at += 9973) {
      const Index i = block.begin[0] + at / block.extent[1], j = block.begin[1] + at % block.extent[1];
      double expected = 0;
      for (Index inner = 0; inner < k; ++inner) expected += a_element(i, inner) * x_element(inner, j);
      if (y[static_cast<std::size_t>(at)] != T(static_cast<Real<T>>(expected)))
        fail(ErrorCode::numeric, fmt::format("{}: wrong at {}, {}", name, i, j));
    }
    if (!dot_test(a).passed) fail(ErrorCode::numeric, fmt::format("{}: the dot-test fails", name));
    DistributedArray<T> back(communicator, a.domain());
    const Timing adjoint = time(communicator, [&] { a.apply_adjoint(y, back); });
    const double work = flops<T>(a.range().shape()[0], k, a.range().shape()[1]);
    report(name, work, forward, adjoint, blas);
  }

  void report(const std::string& name, double work, const Timing& forward, const Timing& adjoint,
              double blas) const {
    if (communicator.rank() != 0) return;
    const auto side = [&](const Timing& timing) {
      const double rate = work / timing.median_s;
      return fmt::format("{:7.2f} ms {:4.0f} GFLOP/s ({:3.0f} % of BLAS, spread {:2.0f} %)",
                         timing.median_s * 1e3, rate * 1e-9, 100 * rate / blas, 100 * timing.spread);
    };
    fmt::print("{:30} forward {}   adjoint {}\n", name, side(forward), side(adjoint));
    std::fflush(stdout);
  }

  template <class T>
  void products(const char* type, Index n, Index k, Index m) const {
    const int ranks = communicator.size();
    const double blas = blas_rate<T>(communicator, n, k, m);
    for (int rows = 1; rows <= ranks; ++rows) {
      if (ranks % rows != 0) continue;
      const std::vector<int> grid{rows, ranks / rows};
      const auto a = filled<T>(communicator, Layout::blocks({n, k}, grid), a_element);
      const std::string what = fmt::format("{}×{}×{} {} {}×{}", n, k, m, type, grid[0], grid[1]);
      product(what, matrix_product(a, m), k, blas);
      if (ranks > 1) product(what + " sent", matrix_product(a, m, {.share = false}), k, blas);
    }
    const auto a = filled<T>(communicator, Layout::split({n, k}, ranks), a_element);
    product(fmt::format("{}×{}×{} {} rows", n, k, m, type), block_product(a, m), k, blas);
  }

  void fredholms() const {
    constexpr Index n = 200, nz = 50;
    const double blas = blas_rate<double>(communicator, n * communicator.size(), n, nz);
    const auto g = filled<double>(communicator, Layout::split({n, n, n}, communicator.size()), a_element);
    for (const Slices slices : {Slices::split, Slices::replicated}) {
      const AnyOperator<double> op = fredholm(g, nz, slices);
      const auto x = filled<double>(communicator, op.domain(), x_element);
      DistributedArray<double> y(communicator, op.range()), back(communicator, op.domain());
      const Timing forward = time(communicator, [&] { op.apply(x, y); });
      for (Index at = 0; at < static_cast<Index>(y.local().size()); at += 997) {
        double expected = 0;
        for (Index inner = 0; inner < n; ++inner)
          expected += a_element(at / nz % n, inner) * x_element(inner, at % nz);
        if (y[static_cast<std::size_t>(at)] != expected) fail(ErrorCode::numeric, "Fredholm is wrong");
      }
      if (!dot_test(op).passed) fail(ErrorCode::numeric, "Fredholm: the dot-test fails");
      const Timing adjoint = time(communicator, [&] { op.apply_adjoint(y, back); });
      report(slices == Slices::split ? "Fredholm 200³, nz 50, split" : "Fredholm 200³, nz 50, replicas",
             flops<double>(n * n, n, nz), forward, adjoint, blas);
    }
  }
};

int run(comm::Communicator& communicator) {
  const Bench bench{communicator};
  bench.products<double>("f64", 2048, 2048, 2048);
  bench.products<double>("f64", 4096, 4096, 1);
  bench.products<std::complex<double>>("c128", 256, 256, 256);
  bench.fredholms();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string transport = argc > 1 ? argv[1] : "threads";
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 1;
  try {
    return comm::run({.transport = transport, .threads = ranks, .symmetric_bytes = std::size_t{512} << 20},
                     run);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_matrices: {}\n", error.what());
    return 1;
  }
}
