// SPDX-License-Identifier: Apache-2.0
// bench_fourier [TRANSPORT [RANKS [CASES]]]: how fast transforms, multi-dimensional and non-stationary
// convolutions are; CASES are words of their names (default: all). Medians of the slowest rank. Each operator
// passes the dot-test, and each transform its inverse, before it is timed. Beside transforms stands how often
// the array could be copied in the time.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/linop/convolution_operators.h"
#include "shoal/linop/fft.h"
#include "shoal/linop/mdc.h"

namespace {

using namespace shoal;
using namespace shoal::linop;
using Clock = std::chrono::steady_clock;

struct Timing {
  double median_ms, spread;  // spread: (slowest - fastest) / median of the middle half
};

template <class Work>
Timing time(comm::Communicator& communicator, Work work) {
  std::vector<double> ms;
  double total = 0;
  work();
  while (ms.size() < 7 || (total < 300 && ms.size() < 60)) {
    communicator.barrier();
    const Clock::time_point start = Clock::now();
    work();
    const double mine = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    ms.push_back(communicator.all_reduce(mine, comm::Reduction::max));
    total += ms.back();
  }
  std::sort(ms.begin(), ms.end());
  const std::size_t n = ms.size();
  return {ms[n / 2], (ms[n - 1 - n / 4] - ms[n / 4]) / ms[n / 2]};
}

struct Bench {
  comm::Communicator& communicator;
  std::string cases;

  bool wanted(const std::string& name) const {
    return cases.empty() || name.find(cases) != std::string::npos;
  }
  void report(const std::string& name, const Timing& forward, const Timing& adjoint,
              const std::string& more = "") const {
    if (communicator.rank() != 0) return;
    fmt::print("{:34} forward {:7.2f} ms (spread {:2.0f} %)   adjoint {:7.2f} ms (spread {:2.0f} %){}\n",
               name, forward.median_ms, 100 * forward.spread, adjoint.median_ms, 100 * adjoint.spread, more);
    std::fflush(stdout);
  }

  template <class D, class R>
  void run(const std::string& name, const AnyOperator<D, R>& a, const std::string& more = "") const {
    if (!dot_test(a).passed) fail(ErrorCode::numeric, fmt::format("{}: the dot-test fails", name));
    DistributedArray<D> x(communicator, a.domain());
    DistributedArray<R> y(communicator, a.range());
    fill_normal(x, 1);
    const Timing forward = time(communicator, [&] { a.apply(x, y); });
    const Timing adjoint = time(communicator, [&] { a.apply_adjoint(y, x); });
    report(name, forward, adjoint, more);
  }

  template <class D>
  void fft(Index n, FftRange range, const char* kind) const {
    const std::string name =
        fmt::format("FFT {}^3 {}{}", n, kind, range == FftRange::transposed ? " transposed" : "");
    if (!wanted(name)) return;
    const Layout layout = Layout::split({n, n, n}, communicator.size());
    const Fft<D> transform(communicator, layout, {.range = range});
    {
      DistributedArray<D> x(communicator, layout), back(communicator, layout);
      DistributedArray<typename Fft<D>::range_type> y(communicator, transform.range());
      fill_normal(x, 1);
      transform.apply(x, y);
      transform.apply_inverse(y, back);
      if (!(norm(DistributedArray<D>(x - back)) < 1e-12 * norm(x)))
        fail(ErrorCode::numeric, fmt::format("{}: the inverse is wrong", name));
    }
    DistributedArray<D> x(communicator, layout), y(communicator, layout);
    const Timing copy = time(communicator, [&] { std::ranges::copy(x.local(), y.local().begin()); });
    run<D, typename Fft<D>::range_type>(name, transform, fmt::format("   copy {:.2f} ms", copy.median_ms));
  }

  void mdc_case(bool replicated) const {
    const std::string name = replicated ? "MDC replicated" : "MDC";
    if (!wanted(name)) return;
    const int ranks = communicator.size();
    DistributedArray<std::complex<double>> kernel(communicator, Layout::split({201, 100, 100}, ranks));
    fill_normal(kernel, 5);
    Mdc options{.nt = 401, .nv = 20};
    if (replicated) options.model = options.data = Layout::replicated({401, 100, 20}, ranks);
    run<double, double>(name, mdc(kernel, options));
  }

  void convolution(int axis) const {
    const std::string name = fmt::format("non-stationary 2000 x 1000, axis {}", axis);
    if (!wanted(name)) return;
    std::vector<double> filters(16 * 61);
    for (std::size_t i = 0; i < filters.size(); ++i) filters[i] = static_cast<double>(i % 17) - 8;
    const local::FilterBank<double> bank(filters, 61, 20, axis == 0 ? 120 : 60);
    run<double, double>(
        name, nonstationary_convolution(communicator, Layout::split({2000, 1000}, communicator.size()), bank,
                                        axis));
  }
};

int run(comm::Communicator& communicator, const std::string& cases) {
  if (communicator.rank() == 0) fmt::print("{} ranks\n", communicator.size());
  const Bench bench{communicator, cases};
  for (const Index n : {200, 256}) {
    bench.fft<std::complex<double>>(n, FftRange::natural, "complex");
    bench.fft<std::complex<double>>(n, FftRange::transposed, "complex");
    bench.fft<double>(n, FftRange::natural, "real");
  }
  bench.mdc_case(false);
  bench.mdc_case(true);
  bench.convolution(0);
  bench.convolution(1);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string transport = argc > 1 ? argv[1] : "threads";
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 1;
  const std::string cases = argc > 3 ? argv[3] : "";
  try {
    return comm::run({.transport = transport, .threads = ranks, .symmetric_bytes = std::size_t{64} << 20},
                     [&](comm::Communicator& communicator) { return run(communicator, cases); });
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_fourier: {}\n", error.what());
    return 1;
  }
}
