// SPDX-License-Identifier: Apache-2.0
// Multi-dimensional convolution against one in time: the kernel's spectrum is that of real traces, and the
// data are their circular convolution with the model, summed over receivers.
#include <fmt/format.h>

#include <numbers>

#include "linop/operator_checks.h"
#include "shoal/linop/mdc.h"

namespace shoal::linop::checks {
namespace {

constexpr Index nt = 9, ns = 4, nr = 3, nv = 2;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

double trace(Index t, Index s, Index r) {
  return static_cast<double>((7 * t + 5 * s + 3 * r + t * s * r) % 11 - 5) / 4;
}

template <class R>
std::vector<std::complex<R>> spectrum(Index frequencies) {
  std::vector<std::complex<R>> g;
  for (Index f = 0; f < frequencies; ++f)
    for (Index s = 0; s < ns; ++s)
      for (Index r = 0; r < nr; ++r) {
        std::complex<double> sum;
        for (Index t = 0; t < nt; ++t)
          sum += trace(t, s, r) * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(f * t) / nt);
        g.emplace_back(sum);
      }
  return g;
}

// data[t, s, v] = factor * sum over r and u of trace[t - u, s, r] model[u, r, v], indices of time modulo nt;
// correlated instead: trace[u - t]. Time 0 of a two-sided model is its middle sample.
template <class R>
std::vector<R> convolved(const std::vector<R>& model, double factor, bool twosided, bool correlated) {
  std::vector<R> data;
  for (Index t = 0; t < nt; ++t)
    for (Index s = 0; s < ns; ++s)
      for (Index v = 0; v < nv; ++v) {
        double sum = 0;
        for (Index u = 0; u < nt; ++u)
          for (Index r = 0; r < nr; ++r) {
            const Index sample = twosided ? (u + nt / 2) % nt : u;
            const Index lag = ((correlated ? u - t : t - u) + nt) % nt;
            sum += trace(lag, s, r) * static_cast<double>(model[at((sample * nr + r) * nv + v)]);
          }
        data.push_back(static_cast<R>(factor * sum));
      }
  return data;
}

template <class R>
DistributedArray<std::complex<R>> kernel_on(const comm::Communicator& communicator, Index frequencies) {
  return DistributedArray<std::complex<R>>::from_full(
      communicator, Layout::split({frequencies, ns, nr}, communicator.size()), spectrum<R>(frequencies));
}

template <class R>
class MdcOperator : public testing::Test {};
TYPED_TEST_SUITE(MdcOperator, RealTypes);

TYPED_TEST(MdcOperator, IsAConvolutionInTime) {
  using R = TypeParam;
  on_ranks([](comm::Communicator& communicator) {
    const int ranks = communicator.size();
    const DistributedArray<std::complex<R>> kernel = kernel_on<R>(communicator, 5);
    std::vector<std::optional<Layout>> models{std::nullopt, Layout::replicated({nt, nr, nv}, ranks)},
        datas{std::nullopt, Layout::replicated({nt, ns, nv}, ranks)};
    for (int axis = 0; axis < 3; ++axis) {
      models.push_back(Layout::split({nt, nr, nv}, ranks, axis));
      datas.push_back(Layout::split({nt, ns, nv}, ranks, axis));
    }
    for (std::size_t layout = 0; layout < models.size(); ++layout)
      for (const bool twosided : {false, true})
        for (const bool conjugated : {false, true}) {
          const Mdc options{.nt = nt,
                            .nv = nv,
                            .dt = 0.5,
                            .dr = 3,
                            .twosided = twosided,
                            .conjugated = conjugated,
                            .prescaled = layout % 2 == 1,
                            .model = models[layout],
                            .data = datas[layout]};
          const double factor = options.prescaled ? 1 : 0.5 * 3 * std::sqrt(static_cast<double>(nt));
          const AnyOperator<R> a = mdc(kernel, options);
          const std::string what =
              fmt::format("MDC {}, {} to {}", layout, a.domain().describe(), a.range().describe());
          std::vector<R> model;
          const std::vector<R> data = apply_to_random(a, 3, model);
          expect_close(data, convolved(model, factor, twosided, conjugated), what);
          expect_adjoint(a, what);
          if (a.domain().is_replicated())
            check_replicas(a.adjoint_of(random_array<R>(communicator, a.range(), 3)));
        }
  });
}

TEST(MdcFrequencies, FewerAreABandAndMoreAreDropped) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const Mdc options{.nt = nt, .nv = nv};
        const AnyOperator<double> all = mdc(kernel_on<double>(communicator, 5), options);
        testing::internal::CaptureStderr();
        const AnyOperator<double> more = mdc(kernel_on<double>(communicator, 8), options);
        communicator.barrier();
        const AnyOperator<double> band = mdc(kernel_on<double>(communicator, 3), options);
        std::vector<double> x;
        EXPECT_EQ(apply_to_random(more, 3, x), apply_to_random(all, 3, x));
        expect_adjoint(band, "band");
        // A band is what the transform of the whole band has below: its own image has no more.
        const std::vector<double> y = apply_to_random(band, 3, x);
        double largest = 0;
        for (Index s = 0; s < ns * nv; ++s) {
          std::complex<double> sum;
          for (Index t = 0; t < nt; ++t)
            sum += y[at(t * ns * nv + s)] *
                   std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(3 * t) / nt);
          largest = std::max(largest, std::abs(sum));
        }
        EXPECT_LT(largest, 1e-12);
        communicator.barrier();
      },
      {1});
}

TEST(MdcOptions, AreChecked) {
  comm::run_threads(2, [](comm::Communicator& communicator) {
    const DistributedArray<std::complex<double>> kernel = kernel_on<double>(communicator, 3);
    const auto error = [&](const Mdc& options) { return error_of([&] { mdc(kernel, options); }); };
    expect_contains(error({.nt = 8}), {"8 samples", "odd"});
    expect_contains(error({.nt = 9, .nv = 0}), {"nv"});
    expect_contains(error({.nt = 9, .nv = 2, .model = Layout::split({9, 4, 2}, 2)}),
                    {"model", "9×3×2", "9×4×2"});
    const auto wrong = DistributedArray<std::complex<double>>(communicator, Layout::split({3, 4, 4}, 2, 1));
    expect_contains(error_of([&] { mdc(wrong, {.nt = 9}); }), {"axis 0"});
  });
}

}  // namespace
}  // namespace shoal::linop::checks
