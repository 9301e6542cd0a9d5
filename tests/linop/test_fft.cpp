// SPDX-License-Identifier: Apache-2.0
// The distributed Fourier transform against sums of exponentials, by the dot-test and its inverse, in every
// layout; and how many redistributions it takes.
#include <fmt/format.h>

#include <numbers>

#include "linop/operator_checks.h"
#include "shoal/linop/fft.h"

namespace shoal::linop::checks {
namespace {

using Complex = std::complex<double>;

struct Full {
  Shape shape;
  std::vector<Complex> elements;
};

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// The transform along one axis by its definition, with padding and shifts.
Full transformed(const Full& x, int axis, Index length, bool shift_before, bool shift_after, Index kept) {
  const Index n = x.shape[at(axis)];
  Full y{x.shape, {}};
  y.shape[at(axis)] = kept;
  y.elements.resize(at(array::size_of_shape(y.shape)));
  Index outer = 1, inner = 1;
  for (int a = 0; a < axis; ++a) outer *= x.shape[at(a)];
  for (std::size_t a = at(axis) + 1; a < x.shape.size(); ++a) inner *= x.shape[a];
  for (Index o = 0; o < outer; ++o)
    for (Index k = 0; k < kept; ++k)
      for (Index j = 0; j < std::min(n, length); ++j) {
        const Index bin = shift_after ? (k + (length + 1) / 2) % length : k;
        const Index sample = shift_before ? (j + n / 2) % n : j;
        const double angle =
            -2 * std::numbers::pi * static_cast<double>(bin * j % length) / static_cast<double>(length);
        const Complex root(std::cos(angle), std::sin(angle));
        for (Index c = 0; c < inner; ++c)
          y.elements[at((o * kept + k) * inner + c)] += root * x.elements[at((o * n + sample) * inner + c)];
      }
  return y;
}

bool value_of(const std::vector<bool>& list, std::size_t i) { return list[list.size() == 1 ? 0 : i]; }

// What an Fft with these options maps `x` to.
template <class D>
std::vector<std::complex<Real<D>>> expected_spectrum(const Shape& shape, const std::vector<D>& x,
                                                     const FftOptions& options) {
  constexpr bool halved = !is_complex<D>;
  Full full{shape, std::vector<Complex>(x.begin(), x.end())};
  double total = 1;
  std::vector<int> axes = options.axes;
  if (axes.empty())
    for (int a = 0; a < static_cast<int>(shape.size()); ++a) axes.push_back(a);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = axes[i] < 0 ? axes[i] + static_cast<int>(shape.size()) : axes[i];
    const bool last = halved && i + 1 == axes.size();
    const Index length = options.lengths.empty() ? shape[at(axis)] : options.lengths[i];
    const Index kept = !last ? length : options.bins > 0 ? options.bins : length / 2 + 1;
    full = transformed(full, axis, length, value_of(options.shift_before, i),
                       !last && value_of(options.shift_after, i), kept);
    total *= static_cast<double>(length);
    if (!last) continue;
    Index inner = 1;
    for (std::size_t a = at(axis) + 1; a < shape.size(); ++a) inner *= full.shape[a];
    for (std::size_t e = 0; e < full.elements.size(); ++e) {
      const Index k = static_cast<Index>(e) / inner % kept;
      if (k != 0 && 2 * k != length) full.elements[e] *= std::numbers::sqrt2;
    }
  }
  const double factor = options.scale == FftScale::none         ? 1
                        : options.scale == FftScale::one_over_n ? 1 / total
                                                                : 1 / std::sqrt(total);
  std::vector<std::complex<Real<D>>> result;
  for (const Complex& value : full.elements) result.emplace_back(value * factor);
  return result;
}

template <class D>
void expect_fft(comm::Communicator& communicator, const Layout& layout, const FftOptions& options,
                const std::string& what) {
  using C = std::complex<Real<D>>;
  SCOPED_TRACE(what + " of " + layout.describe());
  const Fft<D> fft(communicator, layout, options);
  const AnyOperator<D, C> a = fft;
  std::vector<D> x;
  const std::vector<C> y = apply_to_random(a, 3, x);
  expect_close(y, expected_spectrum(layout.shape(), x, options), "forward");
  expect_adjoint(a, "adjoint");
  if (a.range().is_replicated()) check_replicas(a(random_array<D>(communicator, layout, 3)));
  if (options.bins != 0) return;
  const DistributedArray<C> spectrum = DistributedArray<C>::from_full(communicator, a.range(), y);
  DistributedArray<D> back = poisoned<D>(communicator, layout);
  fft.apply_inverse(spectrum, back);
  expect_close(back.to_full(), x, "inverse");
}

template <class D>
class FftOperator : public testing::Test {};
TYPED_TEST_SUITE(FftOperator, ElementTypes);

TYPED_TEST(FftOperator, AllLayouts) {
  on_ranks([](comm::Communicator& communicator) {
    for (const Layout& layout : layouts_of({6, 5, 7}, communicator.size())) {
      expect_fft<TypeParam>(communicator, layout, {}, "all axes");
      expect_fft<TypeParam>(communicator, layout, {.range = FftRange::transposed}, "transposed");
      expect_fft<TypeParam>(communicator, layout, {.axes = {0}, .scale = FftScale::orthonormal}, "axis 0");
      expect_fft<TypeParam>(communicator, layout, {.axes = {2, 0}, .scale = FftScale::one_over_n},
                            "axes 2 and 0");
    }
  });
}

TYPED_TEST(FftOperator, ShiftsAndPadding) {
  on_ranks([](comm::Communicator& communicator) {
    for (const Layout& layout : layouts_of({4, 3, 6}, communicator.size())) {
      expect_fft<TypeParam>(communicator, layout, {.shift_before = {true}, .shift_after = {true}}, "shifts");
      expect_fft<TypeParam>(
          communicator, layout,
          {.axes = {-1, 1}, .lengths = {9, 5}, .shift_before = {false, true}, .shift_after = {true, false}},
          "padding and shifts");
    }
  });
}

TYPED_TEST(FftOperator, AnyLengths) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const int ranks = communicator.size();
        for (const Shape& shape : {Shape{13}, Shape{1}, Shape{1, 9}, Shape{8, 1, 2}, Shape{17, 2}})
          for (const Layout& layout : layouts_of(shape, ranks))
            expect_fft<TypeParam>(communicator, layout, {.scale = FftScale::orthonormal}, "lengths");
        expect_fft<TypeParam>(communicator, Layout::split({2, 3, 4, 5}, ranks, 1), {}, "four axes");
        expect_fft<TypeParam>(communicator, Layout::split({7, 6, 4, 5}, ranks, 0), {}, "four axes");
        expect_fft<TypeParam>(communicator, Layout::split({7, 6}, ranks, 0), {}, "two axes");
        expect_fft<TypeParam>(communicator, Layout::split({2, 3, 4, 5}, ranks, 3), {.axes = {3, 1}},
                              "two of four axes");
      },
      {1, 2, 3, 6});
}

// Lengths for which chunks, batches of chunks and tiles of columns all have a rest.
TYPED_TEST(FftOperator, TilesWithRests) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const int ranks = communicator.size();
        expect_fft<TypeParam>(communicator, Layout::split({3, 70, 45}, ranks, 0), {.axes = {1}}, "middle");
        expect_fft<TypeParam>(communicator, Layout::split({7, 37, 300}, ranks, 0), {.axes = {1, 0}}, "first");
        expect_fft<TypeParam>(communicator, Layout::split({900, 5}, ranks, 0), {.axes = {1}}, "last");
        // Factors that FFTW has no code for.
        for (const Index n : {17, 34, 41})
          expect_fft<TypeParam>(communicator, Layout::split({2, n, 67}, ranks, 2), {.axes = {1}}, "prime");
      },
      {1, 2});
}

// Every factor that ColumnFft has a butterfly for, alone and together, along rows and columns, with and
// without rows and columns that do not fill a panel; and the largest error that rounding makes.
TYPED_TEST(FftOperator, EveryButterfly) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const int ranks = communicator.size();
        for (const Index n : {2, 3, 4, 5, 8, 16, 24, 30, 60, 75, 80, 128, 135})
          for (const Index others : {1, 8, 11}) {
            expect_fft<TypeParam>(communicator, Layout::split({others, n}, ranks), {.axes = {1}}, "rows");
            expect_fft<TypeParam>(communicator, Layout::split({n, others}, ranks, 1), {.axes = {0}},
                                  "columns");
          }
      },
      {1, 2});
}

// One axis as rows and columns, which the same transform on one rank is the measure of.
TYPED_TEST(FftOperator, SplitLines) {
  using D = TypeParam;
  using C = std::complex<Real<D>>;
  on_ranks([](comm::Communicator& communicator) {
    const comm::Communicator self = alone(communicator);
    const int ranks = communicator.size();
    for (const Index n : {4608, 5625, 4099, 8190})  // 2^9 9, 3^2 5^4, a prime, 2 3^2 5 7 13
      for (const Layout& layout : layouts_of({n}, ranks)) {
        SCOPED_TRACE(layout.describe());
        for (const FftOptions& options :
             {FftOptions{.scale = FftScale::orthonormal},
              FftOptions{.scale = FftScale::orthonormal, .shift_before = {true}, .shift_after = {true}},
              FftOptions{.scale = FftScale::orthonormal, .shift_before = {true}}}) {
          const Fft<D> fft(communicator, layout, options), serial(self, Layout::split({n}, 1), options);
          const AnyOperator<D, C> a = fft;
          std::vector<D> x;
          const std::vector<C> y = apply_to_random(a, 7, x);
          const auto x_serial = DistributedArray<D>::from_full(self, serial.domain(), x);
          expect_close(y, AnyOperator<D, C>(serial)(x_serial).to_full(), "forward");
          expect_adjoint(a, "adjoint");
          DistributedArray<D> back = poisoned<D>(communicator, layout);
          fft.apply_inverse(DistributedArray<C>::from_full(communicator, a.range(), y), back);
          expect_close(back.to_full(), x, "inverse");
        }
      }
  });
}

TEST(FftReal, KeepsTheFirstBins) {
  on_ranks([](comm::Communicator& communicator) {
    for (const Layout& layout : layouts_of({9, 5, 4}, communicator.size()))
      for (const Index bins : {1, 3, 5}) {
        expect_fft<double>(communicator, layout, {.axes = {0}, .bins = bins}, "bins");
        expect_fft<double>(
            communicator, layout,
            {.axes = {0}, .bins = bins, .range_layout = Layout::split({bins, 5, 4}, communicator.size(), 0)},
            "bins split");
      }
  });
}

TEST(FftRoutes, TakeAsFewRedistributionsAsPossible) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const auto count = [&](const Layout& layout, const FftOptions& options) {
          return Fft<Complex>(communicator, layout, options).redistributions();
        };
        const auto halved = [&](const Layout& layout, const FftOptions& options) {
          return Fft<double>(communicator, layout, options).redistributions();
        };
        const int ranks = communicator.size();
        const Shape shape{8, 8, 8};
        for (int axis = 0; axis < 3; ++axis) {
          EXPECT_EQ(count(Layout::split(shape, ranks, axis), {}), 2);
          EXPECT_EQ(count(Layout::split(shape, ranks, axis), {.range = FftRange::transposed}), 1);
          EXPECT_EQ(halved(Layout::split(shape, ranks, axis), {}), 2);
          EXPECT_EQ(count(Layout::split(shape, ranks, axis), {.axes = {(axis + 1) % 3}}), 0);
        }
        EXPECT_EQ(count(Layout::blocks(shape, {2, 2, 1}), {}), 2);
        EXPECT_EQ(count(Layout::blocks(shape, {2, 2, 1}), {.range = FftRange::transposed}), 1);
        EXPECT_EQ(count(Layout::replicated(shape, ranks), {}), 0);
        // Pencils where there are fewer planes than ranks.
        EXPECT_EQ(count(Layout::blocks({2, 2, 2}, {2, 2, 1}), {.range = FftRange::transposed}), 2);
        EXPECT_EQ(count(Layout::blocks({2, 2, 2}, {2, 2, 1}), {}), 3);
        // Columns, rows, and their transposition.
        EXPECT_EQ(count(Layout::split({64 * 64}, ranks), {}), 3);
        EXPECT_EQ(count(Layout::split({17}, ranks), {}), 1);
      },
      {4});
}

TEST(FftFrequencies, InTheOrderOfTheOutput) {
  comm::run_threads(1, [](comm::Communicator& communicator) {
    const Layout layout = Layout::split({5, 4}, 1);
    const Fft<Complex> plain(communicator, layout, {.sampling = {0.5, 2}, .shift_after = {false, true}});
    EXPECT_EQ(plain.frequencies(0), (std::vector<double>{0, 0.4, 0.8, -0.8, -0.4}));
    EXPECT_EQ(plain.frequencies(1), (std::vector<double>{-0.25, -0.125, 0, 0.125}));
    const Fft<double> halved(communicator, layout, {.lengths = {5, 8}});
    EXPECT_EQ(halved.frequencies(1), (std::vector<double>{0, 0.125, 0.25, 0.375, 0.5}));
    EXPECT_NE(error_of([&] { (void)halved.frequencies(2); }), "");
  });
}

TEST(FftOptionsChecked, NamesWhatDoesNotFit) {
  comm::run_threads(2, [](comm::Communicator& communicator) {
    const Layout layout = Layout::split({5, 4}, 2);
    const auto complex_error = [&](const FftOptions& options) {
      return error_of([&] { Fft<Complex>(communicator, layout, options); });
    };
    const auto real_error = [&](const FftOptions& options) {
      return error_of([&] { Fft<double>(communicator, layout, options); });
    };
    expect_contains(complex_error({.axes = {0, 2}}), {"axis 2"});
    expect_contains(complex_error({.axes = {1, -1}}), {"axis -1", "twice"});
    expect_contains(complex_error({.lengths = {1, 2, 3}}), {"3 values of length"});
    expect_contains(complex_error({.lengths = {0, 4}}), {"length 0"});
    expect_contains(complex_error({.bins = 2}), {"bins"});
    expect_contains(complex_error({.range_layout = Layout::split({4, 5}, 2)}), {"5×4", "4×5"});
    expect_contains(real_error({.bins = 4}), {"4 bins", "3"});
    expect_contains(real_error({.shift_after = {true, true}}), {"axis 1", "half"});
    const Fft<double> cut(communicator, layout, {.bins = 2});
    DistributedArray<Complex> y(communicator, cut.range());
    DistributedArray<double> x(communicator, layout);
    expect_contains(error_of([&] { cut.apply_inverse(y, x); }, ErrorCode::unsupported), {"2 of 3 bins"});
  });
}

}  // namespace
}  // namespace shoal::linop::checks
