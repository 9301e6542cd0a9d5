// SPDX-License-Identifier: Apache-2.0
// bench_stencils [TRANSPORT [RANKS]]: how fast derivatives and halos of a 300×200×200 array of doubles are,
// split along its first axis. Bandwidth counts every input and output once; beside it the fraction of what
// copying reaches with as many ranks in the same run. The forward is compared with its formula at many
// places, the adjoint by the dot-test, before they are timed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/halo.h"

namespace {

using namespace shoal;
using namespace shoal::linop;
using Clock = std::chrono::steady_clock;

const Shape shape{300, 200, 200};
constexpr Index cells = 300 * 200 * 200;

// Of the slowest rank.
struct Timing {
  double median_s, spread;  // spread: (slowest - fastest) / median of the middle half
};

template <class Work>
Timing time(comm::Communicator& communicator, Work work) {
  std::vector<double> seconds;
  double total = 0;
  while (seconds.size() < 9 || (total < 0.4 && seconds.size() < 200)) {
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

// Past the caches, as a large output is best written.
void copy(const double* from, double* to, std::size_t n) {
#if defined(__SSE2__)
  for (std::size_t i = 0; i + 8 <= n; i += 8)
    for (std::size_t j = i; j < i + 8; j += 2) _mm_stream_pd(to + j, _mm_loadu_pd(from + j));
  _mm_sfence();
#else
  std::memcpy(to, from, n * sizeof(double));
#endif
}

// GB/s of all ranks together, read and written.
double copy_bandwidth(comm::Communicator& communicator) {
  const Layout layout = Layout::split(shape, communicator.size());
  DistributedArray<double> x(communicator, layout), y(communicator, layout);
  x.fill(1);
  copy(x.local().data(), y.local().data(), x.local().size());
  const Timing timing =
      time(communicator, [&] { copy(x.local().data(), y.local().data(), x.local().size()); });
  if (y.local().front() != 1 || y.local().back() != 1) fail(ErrorCode::numeric, "the copy is wrong");
  return 2.0 * cells * sizeof(double) / timing.median_s * 1e-9;
}

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
double slopes(int member, Index i, Index j, Index k) {
  return member == 0 ? three(0, i, j, k) : member == 1 ? three_middle(0, i, j, k) : three_last(0, i, j, k);
}

struct Bench {
  comm::Communicator& communicator;
  double copy_gb_s;

  void report(const char* name, Index elements, const Timing& forward, const Timing& adjoint) const {
    if (communicator.rank() != 0) return;
    const auto gb_s = [&](const Timing& timing) {
      return static_cast<double>(elements) * 8e-9 / timing.median_s;
    };
    const auto side = [&](const Timing& timing) {
      return fmt::format("{:6.2f} ms {:5.1f} GB/s ({:3.0f} % of copy, spread {:2.0f} %)",
                         timing.median_s * 1e3, gb_s(timing), 100 * gb_s(timing) / copy_gb_s,
                         100 * timing.spread);
    };
    fmt::print("{:24} forward {}   adjoint {}\n", name, side(forward), side(adjoint));
    std::fflush(stdout);
  }

  void check(const char* name, const Layout& layout, const DistributedArray<double>& y,
             Formula formula) const {
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

  void derivative(const char* name, const AnyOperator<double>& a, const Layout& layout,
                  Formula formula) const {
    DistributedArray<double> x(communicator, layout), y(communicator, a.range());
    const array::Block block = layout.block(communicator.rank());
    for (Index at = 0; at < block.size(); ++at)
      x[static_cast<std::size_t>(at)] = field(block.begin[0] + at / (200 * 200), at / 200 % 200, at % 200);
    const Timing forward = time(communicator, [&] { a.apply(x, y); });
    check(name, layout, y, formula);
    if (!dot_test(a).passed) fail(ErrorCode::numeric, fmt::format("{}: the dot-test fails", name));
    const Timing adjoint = time(communicator, [&] { a.apply_adjoint(y, x); });
    report(name, a.domain().size() + a.range().size(), forward, adjoint);
  }

  void halos(const char* name, const Layout& layout) const {
    const Halo<double> h = halo<double>(communicator, layout, {2});
    DistributedArray<double> x(communicator, layout), y(communicator, h.extend.range());
    fill_normal(x, 1);
    const Timing forward = time(communicator, [&] { h.extend.apply(x, y); });
    if (!dot_test(h.extend).passed) fail(ErrorCode::numeric, fmt::format("{}: the dot-test fails", name));
    const Timing adjoint = time(communicator, [&] { h.extend.apply_adjoint(y, x); });
    report(name, layout.size() + h.extend.range().size(), forward, adjoint);
    h.extend.apply(x, y);
    DistributedArray<double> back(communicator, layout);
    const Timing crop = time(communicator, [&] { h.crop.apply(y, back); });
    if (!std::ranges::equal(x.local(), back.local())) fail(ErrorCode::numeric, "crop does not undo extend");
    const Timing surround = time(communicator, [&] { h.crop.apply_adjoint(back, y); });
    report("  its crop", layout.size() + h.extend.range().size(), crop, surround);
  }
};

int run(comm::Communicator& communicator) {
  const int ranks = communicator.size();
  const Layout layout = Layout::split(shape, ranks);
  const Bench bench{communicator, copy_bandwidth(communicator)};
  if (communicator.rank() == 0) fmt::print("{} ranks: copying {:.1f} GB/s\n", ranks, bench.copy_gb_s);
  bench.derivative("first, axis 0, 3 points", first_derivative<double>(communicator, layout, 0), layout,
                   three);
  bench.derivative("first, axis 0, 5 points", first_derivative<double>(communicator, layout, 0, {.order = 5}),
                   layout, five);
  bench.derivative("first, axis 1", first_derivative<double>(communicator, layout, 1), layout, three_middle);
  bench.derivative("first, axis 2", first_derivative<double>(communicator, layout, 2), layout, three_last);
  bench.derivative("Laplacian, 3 axes", laplacian<double>(communicator, layout, {.axes = {0, 1, 2}}), layout,
                   three_axes);
  bench.derivative("gradient", gradient<double>(communicator, layout), layout, slopes);
  bench.halos("halo 2, split axis 0", layout);
  bench.halos("halo 2, split axis 2", Layout::split(shape, ranks, 2));
  const double after = copy_bandwidth(communicator);
  if (communicator.rank() == 0) fmt::print("{} ranks: copying {:.1f} GB/s afterwards\n", ranks, after);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string transport = argc > 1 ? argv[1] : "threads";
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 1;
  try {
    return comm::run({.transport = transport, .threads = ranks, .symmetric_bytes = std::size_t{64} << 20},
                     run);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_stencils: {}\n", error.what());
    return 1;
  }
}
