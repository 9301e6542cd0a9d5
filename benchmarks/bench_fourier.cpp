// SPDX-License-Identifier: Apache-2.0
// Transforms, multi-dimensional and non-stationary convolutions. Each operator passes the dot-test, and each
// transform its inverse, before it is timed. A case of a transform is one forward and one backward.
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "measure.h"
#include "shoal/base/error.h"
#include "shoal/linop/convolution_operators.h"
#include "shoal/linop/fft.h"
#include "shoal/linop/mdc.h"

namespace {

using namespace shoal;
using namespace shoal::linop;

template <class D, class R>
void require_dot_test(const std::string& name, const AnyOperator<D, R>& a) {
  if (!dot_test(a).passed) fail(ErrorCode::numeric, name + ": the dot-test fails");
}

template <class D>
void require_inverse(const std::string& name, const Fft<D>& transform, const DistributedArray<D>& x,
                     DistributedArray<typename Fft<D>::range_type>& y, DistributedArray<D>& back) {
  transform.apply(x, y);
  transform.apply_inverse(y, back);
  if (!(norm(DistributedArray<D>(x - back)) < 1e-12 * norm(x)))
    fail(ErrorCode::numeric, name + ": the inverse is wrong");
}

template <class D>
void fft(bench::Bench& bench, Index n, const std::string& kind, FftRange range = FftRange::natural) {
  const std::string name =
      fmt::format("FFT{} {} {}", range == FftRange::transposed ? " transposed" : "", n, kind);
  if (!bench.wanted(name)) return;
  const comm::Communicator& world = bench.communicator;
  const Layout layout = Layout::split({n, n, n}, world.size());
  const Fft<D> transform(world, layout, {.range = range});
  require_dot_test<D, typename Fft<D>::range_type>(name, transform);
  DistributedArray<D> x(world, layout), back(world, layout);
  DistributedArray<typename Fft<D>::range_type> y(world, transform.range());
  fill_normal(x, 1);
  require_inverse(name, transform, x, y, back);
  const auto size = static_cast<double>(n * n * n);
  // The usual count for a complex transform; half of it for a real one.
  const double flops = 2 * (array::is_complex<D> ? 5 : 2.5) * size * std::log2(size);
  bench.compute_case(name, flops, 0, [&] {
    transform.apply(x, y);
    transform.apply_adjoint(y, back);
  });
}

template <class D>
void convolution(bench::Bench& bench, const std::string& name, const AnyOperator<D>& a) {
  require_dot_test(name, a);
  DistributedArray<D> x(bench.communicator, a.domain()), y(bench.communicator, a.range());
  fill_normal(x, 1);
  bench.compute_case(name + ", forward", 0, 0, [&] { a.apply(x, y); });
  bench.compute_case(name + ", adjoint", 0, 0, [&] { a.apply_adjoint(y, x); });
}

void mdc_case(bench::Bench& bench, bool replicated) {
  const std::string name = replicated ? "MDC, replicated" : "MDC, split";
  if (!bench.wanted(name)) return;
  const int ranks = bench.communicator.size();
  DistributedArray<std::complex<double>> kernel(bench.communicator, Layout::split({200, 100, 100}, ranks));
  fill_normal(kernel, 5);
  Mdc options{.nt = 401, .nv = 20};
  if (replicated) options.model = options.data = Layout::replicated({401, 100, 20}, ranks);
  convolution(bench, name, mdc(kernel, options));
}

void nonstationary(bench::Bench& bench, int axis) {
  const std::string name = fmt::format("non-stationary convolution, axis {}", axis);
  if (!bench.wanted(name)) return;
  std::vector<double> filters(8 * 41);
  for (std::size_t i = 0; i < filters.size(); ++i) filters[i] = static_cast<double>(i % 17) - 8;
  const local::FilterBank<double> bank(filters, 41, axis == 0 ? 125 : 62, axis == 0 ? 250 : 125);
  convolution(bench, name,
              nonstationary_convolution(bench.communicator,
                                        Layout::split({2000, 1000}, bench.communicator.size()), bank, axis));
}

void all(bench::Bench& bench) {
  for (const Index n : {200, 256}) {
    fft<std::complex<double>>(bench, n, "complex");
    fft<double>(bench, n, "real");
    fft<std::complex<double>>(bench, n, "complex", FftRange::transposed);
    fft<double>(bench, n, "real", FftRange::transposed);
  }
  mdc_case(bench, false);
  mdc_case(bench, true);
  nonstationary(bench, 0);
  nonstationary(bench, 1);
}

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, std::size_t{64} << 20, all); }
