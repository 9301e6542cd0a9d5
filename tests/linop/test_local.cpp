// SPDX-License-Identifier: Apache-2.0
// Local operators: their matrices, column by column, against the definition; their adjoints against the
// conjugate transpose of that.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/linop/local/algebra.h"
#include "shoal/linop/local/convolution.h"
#include "shoal/linop/local/elementwise.h"
#include "shoal/linop/local/fourier.h"
#include "shoal/linop/local/matrix.h"
#include "shoal/linop/local/poststack.h"
#include "shoal/linop/local/sampling.h"
#include "shoal/linop/local/shape.h"
#include "shoal/linop/local/spread.h"

namespace shoal::linop::local {
namespace {

template <class T>
struct LocalOperators : testing::Test {};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(LocalOperators, Types);

template <class T>
using RealOf = decltype(std::abs(T{}));

// A value for each pair of numbers; complex ones have an imaginary part.
template <class T>
T value(Index i, Index j = 0) {
  const auto v = static_cast<RealOf<T>>(0.25) * static_cast<RealOf<T>>((7 * i + 3 * j + 2) % 11 - 5);
  if constexpr (std::is_same_v<T, RealOf<T>>)
    return v;
  else
    return {v, static_cast<RealOf<T>>(0.5) * static_cast<RealOf<T>>((5 * i + j) % 7 - 3)};
}
template <class T>
std::vector<T> values(Index n) {
  std::vector<T> v;
  for (Index i = 0; i < n; ++i) v.push_back(value<T>(i));
  return v;
}
template <class T>
T conjugate(T a) {
  if constexpr (std::is_same_v<T, RealOf<T>>)
    return a;
  else
    return std::conj(a);
}

// The operator must equal `expected(row, column)`, and its adjoint the conjugate transpose. Outputs start as
// NaN, which an operator that adds to them would keep.
template <class T>
void expect_matrix(const AnyLocalOperator<T>& op, Index rows, Index cols,
                   const std::function<T(Index, Index)>& expected) {
  ASSERT_EQ(op.rows(), rows);
  ASSERT_EQ(op.cols(), cols);
  const T poison(std::numeric_limits<RealOf<T>>::quiet_NaN());
  const double tolerance = 64 * std::numeric_limits<RealOf<T>>::epsilon();
  for (const bool adjoint : {false, true}) {
    std::vector<T> unit(static_cast<std::size_t>(adjoint ? rows : cols));
    for (std::size_t c = 0; c < unit.size(); ++c) {
      std::vector<T> out(static_cast<std::size_t>(adjoint ? cols : rows), poison);
      unit[c] = T(1);
      adjoint ? op.apply_adjoint(unit, out) : op.apply(unit, out);
      unit[c] = T{};
      for (std::size_t r = 0; r < out.size(); ++r) {
        const auto i = static_cast<Index>(r), j = static_cast<Index>(c);
        const T wanted = adjoint ? conjugate(expected(j, i)) : expected(i, j);
        ASSERT_LE(std::abs(out[r] - wanted), tolerance * (1 + std::abs(wanted)))
            << (adjoint ? "adjoint" : "operator") << " at (" << r << ", " << c << ")";
      }
    }
  }
}

// An operator along one axis from its matrix [rows, cols] of one line.
template <class T>
std::function<T(Index, Index)> along(Index outer, Index rows, Index cols, Index inner,
                                     std::function<T(Index, Index)> line) {
  (void)outer;
  return [=](Index i, Index j) {
    if (i % inner != j % inner || i / (rows * inner) != j / (cols * inner)) return T{};
    return line(i / inner % rows, j / inner % cols);
  };
}

TYPED_TEST(LocalOperators, DenseMatrix) {
  using T = TypeParam;
  std::vector<T> elements;
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 3; ++j) elements.push_back(value<T>(i, j));
  expect_matrix<T>(DenseMatrix<T>(4, 3, elements), 4, 3, value<T>);
  expect_matrix<T>(DenseMatrix<T>(4, 3, elements, 5), 20, 15, along<T>(1, 4, 3, 5, value<T>));
  const std::vector<T> nothing = {};
  for (const Index columns : {1, 2}) {  // sums over nothing
    std::vector<T> out(static_cast<std::size_t>(3 * columns), value<T>(1));
    const AnyLocalOperator<T> flat = DenseMatrix<T>(3, 0, {}, columns);
    flat.apply(nothing, out);
    EXPECT_EQ(out, std::vector<T>(out.size()));
    const AnyLocalOperator<T> narrow = DenseMatrix<T>(0, 3, {}, columns);
    out.assign(out.size(), value<T>(1));
    narrow.apply_adjoint(nothing, out);
    EXPECT_EQ(out, std::vector<T>(out.size()));
  }
  EXPECT_THROW(DenseMatrix<T>(4, 4, elements), Error);
}

TYPED_TEST(LocalOperators, SparseMatrix) {
  using T = TypeParam;
  const std::vector<Entry<T>> entries{
      {0, 1, value<T>(1)}, {2, 0, value<T>(2)}, {2, 3, value<T>(3)}, {2, 3, value<T>(4)}};
  expect_matrix<T>(SparseMatrix<T>(3, 4, entries), 3, 4, [](Index i, Index j) {
    if (i == 0 && j == 1) return value<T>(1);
    if (i == 2 && j == 0) return value<T>(2);
    return i == 2 && j == 3 ? value<T>(3) + value<T>(4) : T{};
  });
  const std::vector<Entry<T>> outside{{3, 0, T(1)}};
  EXPECT_THROW(SparseMatrix<T>(3, 4, outside), Error);
}

TYPED_TEST(LocalOperators, DiagonalIdentityZero) {
  using T = TypeParam;
  expect_matrix<T>(Diagonal<T>(values<T>(5)), 5, 5,
                   [](Index i, Index j) { return i == j ? value<T>(i) : T{}; });
  const auto unit = [](Index i, Index j) { return T(i == j ? 1 : 0); };
  expect_matrix<T>(Identity<T>(4, 6), 4, 6, unit);
  expect_matrix<T>(Identity<T>(6, 4), 6, 4, unit);
  expect_matrix<T>(Zero<T>(3, 2), 3, 2, [](Index, Index) { return T{}; });
}

TYPED_TEST(LocalOperators, Convolution) {
  using T = TypeParam;
  const std::vector<T> h = values<T>(5);
  for (const Index n : {1, 3, 40, 67})  // below, at and above the tile
    for (const Index offset : {0, 2, 4}) {
      const auto line = [&](Index i, Index j) {
        const Index k = i - j + offset;
        return k >= 0 && k < 5 ? h[static_cast<std::size_t>(k)] : T{};
      };
      expect_matrix<T>(Convolve1D<T>({n}, h, offset), n, n, line);
    }
  const auto line = [&](Index i, Index j) {
    const Index k = i - j + 1;
    return k >= 0 && k < 5 ? h[static_cast<std::size_t>(k)] : T{};
  };
  expect_matrix<T>(Convolve1D<T>({2, 6, 35}, h, 1, 1), 420, 420, along<T>(2, 6, 6, 35, line));
  EXPECT_THROW(Convolve1D<T>({4}, h, 5), Error);
  EXPECT_THROW(Convolve1D<T>({4}, h, 1, 1), Error);
}

TYPED_TEST(LocalOperators, NonStationaryConvolution) {
  using T = TypeParam;
  const Index n = 23, length = 5;
  const std::vector<T> filters = values<T>(3 * length);
  const auto filter = [&](Index i, Index k) {  // positions 4, 10, 16
    const auto at = [&](Index f) { return filters[static_cast<std::size_t>(f * length + k)]; };
    if (i <= 4) return at(0);
    if (i >= 16) return at(2);
    const auto weight = static_cast<RealOf<T>>((i - 4) % 6) / static_cast<RealOf<T>>(6);
    return (1 - weight) * at((i - 4) / 6) + weight * at(std::min<Index>((i - 4) / 6 + 1, 2));
  };
  const auto line = [&](Index j, Index i) {
    const Index k = j - i + length / 2;
    return k >= 0 && k < length ? filter(i, k) : T{};
  };
  const FilterBank<T> bank(filters, length, 4, 6);
  expect_matrix<T>(NonStationaryConvolve1D<T>({n}, bank), n, n, line);
  expect_matrix<T>(NonStationaryConvolve1D<T>({2, n, 3}, bank, 1), 6 * n, 6 * n, along<T>(2, n, n, 3, line));
  EXPECT_THROW(FilterBank<T>(filters, 3 + 1, 0, 1), Error);
  // A bank of one filter is a convolution.
  const std::vector<T> one(filters.begin(), filters.begin() + 5);
  const auto constant = [&](Index i, Index j) {
    const Index k = i - j + 2;
    return k >= 0 && k < 5 ? one[static_cast<std::size_t>(k)] : T{};
  };
  expect_matrix<T>(NonStationaryConvolve1D<T>({n}, FilterBank<T>(one, 5, 7, 1)), n, n, constant);
}

TYPED_TEST(LocalOperators, RestrictionAndInterpolation) {
  using T = TypeParam;
  const std::vector<Index> chosen{3, 0, 3};
  const auto pick = [&](Index i, Index j) { return T(chosen[static_cast<std::size_t>(i)] == j ? 1 : 0); };
  expect_matrix<T>(Restriction<T>({2, 4, 3}, chosen, 1), 18, 24, along<T>(2, 3, 4, 3, pick));
  const std::vector<double> positions{0, 1.25, 3};
  const auto interpolate = [&](Index i, Index j) {
    const double p = positions[static_cast<std::size_t>(i)];
    return T(static_cast<RealOf<T>>(std::max(0.0, 1 - std::abs(p - static_cast<double>(j)))));
  };
  expect_matrix<T>(Interpolation<T>({2, 4, 3}, positions, 1), 18, 24, along<T>(2, 3, 4, 3, interpolate));
  EXPECT_THROW(Restriction<T>({4}, {4}), Error);
  EXPECT_THROW(Interpolation<T>({4}, {3.5}), Error);
}

TYPED_TEST(LocalOperators, TransposePadSum) {
  using T = TypeParam;
  // Output (k, i, j) of axes {2, 0, 1} is input (i, j, k), with dims (2, 3, 4).
  expect_matrix<T>(Transpose<T>({2, 3, 4}, {2, 0, 1}), 24, 24, [](Index r, Index c) {
    const Index k = r / 6, i = r / 3 % 2, j = r % 3;
    return T((i * 3 + j) * 4 + k == c ? 1 : 0);
  });
  EXPECT_THROW(Transpose<T>({2, 3}, {0, 0}), Error);
  EXPECT_THROW(Transpose<T>({2, 3}, {}), Error);
  expect_matrix<T>(Pad<T>({2, 3}, {{1, 0}, {2, 1}}), 18, 6, [](Index r, Index c) {
    const Index i = r / 6 - 1, j = r % 6 - 2;
    return T(i >= 0 && j >= 0 && j < 3 && i * 3 + j == c ? 1 : 0);
  });
  expect_matrix<T>(Sum<T>({2, 3, 4}, 1), 8, 24,
                   [](Index r, Index c) { return T(r / 4 == c / 12 && r % 4 == c % 4 ? 1 : 0); });
}

TYPED_TEST(LocalOperators, PoststackModelling) {
  using T = TypeParam;
  const std::vector<T> wavelet = values<T>(7);
  for (const bool centered : {true, false}) {
    for (const Index n : {1, 2, 9, 45}) {
      const auto line = [&](Index i, Index j) {
        T sum{};
        for (Index r = centered ? 1 : 0; r + 1 < n; ++r) {
          const Index k = i - r + 3;
          if (k < 0 || k >= 7) continue;
          const T h = wavelet[static_cast<std::size_t>(k)];
          if (j == r + 1) sum += centered ? RealOf<T>(0.5) * h : h;
          if (j == (centered ? r - 1 : r)) sum -= centered ? RealOf<T>(0.5) * h : h;
        }
        return sum;
      };
      const auto kind =
          centered ? PoststackModelling<T>::Derivative::centered : PoststackModelling<T>::Derivative::forward;
      expect_matrix<T>(PoststackModelling<T>({n}, wavelet, -1, kind), n, n, line);
      if (n < 40)
        expect_matrix<T>(PoststackModelling<T>({2, n, 3}, wavelet, 1, kind), 6 * n, 6 * n,
                         along<T>(2, n, n, 3, line));
    }
  }
}

TYPED_TEST(LocalOperators, Spread) {
  using T = TypeParam;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> times{0, 1.25f, 4, nan, -0.5f, 4.5f};  // 3 points, 2 traces, 5 samples
  expect_matrix<T>(Spread<T>(3, 2, 5, times), 10, 3, [&](Index r, Index c) {
    const float time = times[static_cast<std::size_t>(c * 2 + r / 5)];
    if (!(time >= 0 && time <= 4)) return T{};
    return T(static_cast<RealOf<T>>(std::max(0.0f, 1 - std::abs(time - static_cast<float>(r % 5)))));
  });
}

// A float does not hold every index of so long a trace: the next above the last is the next float.
TEST(Spread, EndsWithALongTrace) {
  constexpr Index samples = (Index{1} << 24) + 4;
  const Spread<float> spread(1, 1, samples, {static_cast<float>(samples)});
  const std::vector<float> x = {1};
  std::vector<float> y(samples + 1);
  spread.apply(x, std::span(y).first(samples));
  EXPECT_EQ(y.back(), 0);
}

TYPED_TEST(LocalOperators, Algebra) {
  using T = TypeParam;
  std::vector<T> elements;
  for (Index i = 0; i < 12; ++i) elements.push_back(value<T>(i / 3, i % 3));
  const AnyLocalOperator<T> a = DenseMatrix<T>(4, 3, elements), d = Diagonal<T>(values<T>(4));
  expect_matrix<T>(adjoint(a), 3, 4, [](Index i, Index j) { return conjugate(value<T>(j, i)); });
  expect_matrix<T>(product(d, a), 4, 3, [](Index i, Index j) { return value<T>(i) * value<T>(i, j); });
  expect_matrix<T>(sum(a, scaled(value<T>(3), a)), 4, 3,
                   [](Index i, Index j) { return (T(1) + value<T>(3)) * value<T>(i, j); });
  EXPECT_THROW(product(a, a), Error);
  EXPECT_THROW(sum(a, d), Error);
}

TYPED_TEST(LocalOperators, RefuseSharedMemoryAndWrongLengths) {
  using T = TypeParam;
  const AnyLocalOperator<T> a = Identity<T>(4);
  std::vector<T> x(4), y(3);
  EXPECT_THROW(a.apply(x, y), Error);
  EXPECT_THROW(a.apply(x, x), Error);
}

template <class T>
void check_fft() {
  const auto wave = [](Index i, Index j, Index n) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(i * j % n) / static_cast<double>(n);
    return T(static_cast<RealOf<T>>(std::cos(angle)), static_cast<RealOf<T>>(std::sin(angle)));
  };
  expect_matrix<T>(Fft<T>({7}, {0}, FftScale::none), 7, 7, [&](Index i, Index j) { return wave(i, j, 7); });
  const auto factor = static_cast<RealOf<T>>(1 / std::sqrt(15.0));
  expect_matrix<T>(Fft<T>({3, 2, 5}, {0, -1}), 30, 30, [&](Index r, Index c) {
    if (r / 5 % 2 != c / 5 % 2) return T{};
    return factor * wave(r / 10, c / 10, 3) * wave(r % 5, c % 5, 5);
  });
  expect_matrix<T>(Fft<T>({2, 6}, {1}, FftScale::one_over_n), 12, 12, [&](Index r, Index c) {
    return r / 6 == c / 6 ? wave(r % 6, c % 6, 6) / static_cast<RealOf<T>>(6) : T{};
  });
  EXPECT_THROW(Fft<T>({3}, {0, 0}), Error);
}
TEST(LocalFft, EqualsTheDefinition) {
  check_fft<std::complex<float>>();
  check_fft<std::complex<double>>();
}

TEST(TravelTimes, AreDistancesOverVelocity) {
  const std::vector<Position> receivers{{0, 0}, {30, 0}};
  const std::vector<float> times = travel_times(4, 5, 10, {30, 0}, receivers, 1000, 0.001);
  ASSERT_EQ(times.size(), 40u);
  EXPECT_FLOAT_EQ(times[0], 30);                    // point (0, 0), receiver (0, 0)
  EXPECT_FLOAT_EQ(times[(0 * 5 + 4) * 2 + 0], 90);  // point (0, 40): 50 to the source, 40 to the receiver
  EXPECT_FLOAT_EQ(times[(3 * 5 + 4) * 2 + 1], 80);  // point (30, 40), receiver (30, 0)
}

TEST(Ricker, PeaksInTheMiddle) {
  const std::vector<double> w = ricker(10, 0.004, 15);
  ASSERT_EQ(w.size(), 21u);
  EXPECT_DOUBLE_EQ(w[10], 1);
  EXPECT_DOUBLE_EQ(w[3], w[17]);
  EXPECT_LT(w[15], 0);
}

}  // namespace
}  // namespace shoal::linop::local
