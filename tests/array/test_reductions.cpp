// SPDX-License-Identifier: Apache-2.0
// Dots, norms, fused updates.
#include <algorithm>
#include <cmath>
#include <limits>

#include "array/support.h"

namespace shoal::array {
namespace {

using testing::expect_error;
using testing::filled;
using testing::for_each_type;
using testing::on_ranks;
using testing::value;

template <class T>
T conjugated(const T& v) {
  if constexpr (is_complex<T>)
    return std::conj(v);
  else
    return v;
}

// Layouts of `n` elements along the first of two axes, also as members of stacks.
std::vector<Layout> many_layouts(Index n, int ranks) {
  std::vector<Layout> all = testing::layouts({n, 3}, ranks);
  all.push_back(Layout::stack({all[0], Layout::replicated({n}, ranks), Layout::stack({all[1], all[4]})}));
  return all;
}

TEST(Reductions, DotsOfWholeNumbersAreExact) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      for (const Index n : {0, 1, world.size() - 1, 29, 1000})
        for (const Layout& layout : many_layouts(n, world.size())) {
          SCOPED_TRACE(layout.describe());
          const auto x = filled<T>(world, layout);
          const auto y = DistributedArray<T>(x * x + T(1));
          T conjugate_sum{}, sum{};
          double squares = 0;
          for (Index i = 0; i < layout.size(); ++i) {
            const T v = value<T>(i), w = v * v + T(1);
            conjugate_sum += conjugated(v) * w;
            sum += v * w;
            squares += static_cast<double>(std::norm(v));
          }
          EXPECT_EQ(dot(x, y), conjugate_sum);
          EXPECT_EQ(dotu(x, y), sum);
          EXPECT_EQ(dot(x, x), T(static_cast<Real<T>>(squares)));
          EXPECT_EQ(dotu(y, x), sum);
        }
    });
  });
}

TEST(Reductions, TheFirstArgumentIsConjugated) {
  comm::run_threads(2, [](comm::Communicator& world) {
    using Complex = std::complex<double>;
    const Complex i(0, 1);
    const Layout two = Layout::split({2}, 2), one = Layout::split({1}, 2);
    const auto x = DistributedArray<Complex>::from_full(world, two, std::vector<Complex>{1, i});
    EXPECT_EQ(dot(x, x), Complex(2));
    EXPECT_EQ(dotu(x, x), Complex(0));
    const auto a = DistributedArray<Complex>::from_full(world, one, std::vector<Complex>{i});
    const auto b = DistributedArray<Complex>::from_full(world, one, std::vector<Complex>{1});
    EXPECT_EQ(dot(a, b), -i);
    EXPECT_EQ(dot(b, a), i);
  });
}

TEST(Reductions, ReplicasCountOnce) {
  on_ranks([](comm::Communicator& world) {
    DistributedArray<double> x(world, Layout::replicated({5}, world.size()));
    x.fill(1);
    EXPECT_EQ(dot(x, x), 5);
    EXPECT_EQ(norm(x, norm_one), 5);
    EXPECT_EQ(norm(x, norm_zero), 5);
    EXPECT_EQ(norm(x), std::sqrt(5.0));
    // No communication: a rank may be alone with it.
    if (world.rank() == 0) {
      EXPECT_EQ(dot(x, x), 5);
    }
  });
}

TEST(Reductions, ManyFloatsAddUp) {
  comm::run_threads(2, [](comm::Communicator& world) {
    constexpr Index n = 40'000'000;  // beyond 2^24, where a float no longer counts by ones
    DistributedArray<float> x(world, Layout::split({n}, 2), uninitialised);
    x.fill(1);
    EXPECT_EQ(dot(x, x), static_cast<float>(n));
    EXPECT_EQ(norm(x, norm_one), static_cast<float>(n));
    EXPECT_EQ(norm(x, norm_zero), static_cast<float>(n));
  });
}

// The norm of a vector of magnitudes, in long double.
double expected_norm(std::vector<long double> magnitudes, Norm which) {
  long double sum = 0;
  switch (which.kind) {
    case Norm::Kind::p:
      for (const long double m : magnitudes) sum += std::pow(m, static_cast<long double>(which.p));
      return static_cast<double>(std::pow(sum, 1 / static_cast<long double>(which.p)));
    case Norm::Kind::count:
      return static_cast<double>(
          std::count_if(magnitudes.begin(), magnitudes.end(), [](long double m) { return m != 0; }));
    case Norm::Kind::largest:
      for (const long double m : magnitudes) sum = std::max(sum, m);
      return static_cast<double>(sum);
    case Norm::Kind::smallest: break;
  }
  sum = std::numeric_limits<long double>::infinity();
  for (const long double m : magnitudes) sum = std::min(sum, m);
  return static_cast<double>(sum);
}

const Norm all_norms[] = {norm_two,
                          norm_one,
                          norm_zero,
                          norm_max,
                          norm_min,
                          {Norm::Kind::p, 3},
                          {Norm::Kind::p, 0.5},
                          {Norm::Kind::p, -1},
                          {Norm::Kind::p, -2},
                          {Norm::Kind::p, std::numeric_limits<double>::infinity()}};

Norm plain(Norm which) { return std::isinf(which.p) ? norm_max : which; }

template <class T>
void expect_close(Real<T> actual, double expected) {
  const double tolerance =
      8 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon()) * std::fabs(expected);
  if (std::isinf(expected))
    EXPECT_EQ(actual, expected);
  else
    EXPECT_NEAR(static_cast<double>(actual), expected, tolerance);
}

TEST(Norms, OfEveryKindAndScale) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      constexpr bool is_float = std::is_same_v<Real<T>, float>;
      for (const double scale : {1.0, is_float ? 1e-30 : 1e-200, is_float ? 1e30 : 1e200, 0.0})
        for (const Index n : {0, 1, 30})
          for (const Layout& layout : many_layouts(n, world.size())) {
            const auto x = DistributedArray<T>(filled<T>(world, layout) * scale);
            std::vector<long double> magnitudes;
            for (const T& v : x.to_full()) magnitudes.push_back(std::abs(std::complex<long double>(v)));
            for (const Norm which : all_norms) {
              SCOPED_TRACE(layout.describe() + " p " + std::to_string(which.p) + " scale " +
                           std::to_string(scale));
              expect_close<T>(norm(x, which), expected_norm(magnitudes, plain(which)));
            }
          }
    });
  });
}

TEST(Norms, NeitherVanishNorOverflow) {
  comm::run_threads(2, [](comm::Communicator& world) {
    DistributedArray<double> x(world, Layout::split({4}, 2));
    for (const double v : {1e-200, 1e200, 5e-324, 1e-310, 4e307}) {
      x.fill(v);
      EXPECT_DOUBLE_EQ(norm(x), 2 * v);
    }
  });
}

TEST(Norms, NaNAndInfinityOnOneRankAreSeenByAll) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      using R = Real<T>;
      for (const R odd : {std::numeric_limits<R>::quiet_NaN(), std::numeric_limits<R>::infinity()})
        for (const Index n : {40, 41, 7}) {
          const Layout layout = Layout::split({n}, world.size());
          std::vector<T> full(static_cast<std::size_t>(n), T(1));
          full[static_cast<std::size_t>(n - 3)] = T(odd);
          const auto x = DistributedArray<T>::from_full(world, layout, full);
          for (const Norm which : {norm_two, norm_one, norm_max, Norm{Norm::Kind::p, 3}}) {
            const R found = norm(x, which);
            EXPECT_TRUE(std::isnan(odd) ? std::isnan(found) : std::isinf(found)) << found << " p " << which.p;
          }
          if (std::isnan(odd))
            EXPECT_TRUE(std::isnan(norm(x, norm_min)));
          else
            EXPECT_EQ(norm(x, norm_min), 1);
          EXPECT_TRUE(!std::isfinite(std::real(dot(x, x))));
        }
    });
  });
}

TEST(Norms, AlongAnAxis) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      const Shape shape = {5, 4, 6};
      for (const Layout& layout : testing::layouts(shape, world.size()))
        for (int axis = 0; axis < 3; ++axis) {
          SCOPED_TRACE(layout.describe() + ", axis " + std::to_string(axis));
          const auto x = filled<T>(world, layout);
          if (layout.split_axis() != axis && layout.extents(axis).size() > 1) {
            expect_error(ErrorCode::unsupported, "redistribute", [&] { (void)norm_along(x, axis); });
            continue;
          }
          for (const double scale : {1.0, std::is_same_v<Real<T>, float> ? 1.0 : 1e-200})
            for (const Norm which : all_norms) {
              const auto result = norm_along(DistributedArray<T>(x * scale), axis - 3, which);
              EXPECT_EQ(result.layout().is_replicated(),
                        layout.is_replicated() || layout.split_axis() == axis);
              const std::vector<Real<T>> full = result.to_full();
              Shape rest = shape;
              rest.erase(rest.begin() + axis);
              ASSERT_EQ(result.layout().shape(), rest);
              for (Index i = 0; i < rest[0]; ++i)
                for (Index j = 0; j < rest[1]; ++j) {
                  std::vector<long double> magnitudes;
                  for (Index k = 0; k < shape[static_cast<std::size_t>(axis)]; ++k) {
                    const Index global = axis == 0   ? (k * 4 + i) * 6 + j
                                         : axis == 1 ? (i * 4 + k) * 6 + j
                                                     : (i * 4 + j) * 6 + k;
                    magnitudes.push_back(
                        std::abs(std::complex<long double>(value<T>(global) * Real<T>(scale))));
                  }
                  expect_close<T>(full[static_cast<std::size_t>(i * rest[1] + j)],
                                  expected_norm(magnitudes, plain(which)));
                }
            }
        }
      const auto vector = filled<T>(world, Layout::split({9}, world.size()));
      EXPECT_EQ(norm_along(vector, 0).to_full(), (std::vector<Real<T>>{norm(vector)}));
      expect_error(ErrorCode::invalid_argument, "axis 1", [&] { (void)norm_along(vector, 1); });
      expect_error(ErrorCode::invalid_argument, "p = 0", [&] { (void)norm(vector, Norm{Norm::Kind::p, 0}); });
    });
  });
}

TEST(Reductions, PendingDotsAreTheDots) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      using Pair = typename PendingDots<T>::Pair;
      for (const Layout& layout : many_layouts(50, world.size())) {
        const auto x = filled<T>(world, layout);
        const auto y = DistributedArray<T>(x * T(2) + T(1));
        const auto z = filled<T>(world, Layout::replicated({3}, world.size()));
        const Pair pairs[] = {{&x, &x}, {&x, &y}, {&z, &z}, {&y, &x}};
        PendingDots<T> pending(pairs);
        const DistributedArray<T> meanwhile = x + y;
        PendingDots<T> moved = std::move(pending);
        const std::span<const T> dots = moved.wait();
        ASSERT_EQ(dots.size(), 4u);
        EXPECT_EQ(dots[0], dot(x, x));
        EXPECT_EQ(dots[1], dot(x, y));
        EXPECT_EQ(dots[2], dot(z, z));
        EXPECT_EQ(dots[3], dot(y, x));
      }
      const auto x = filled<T>(world, Layout::split({3}, world.size()));
      const std::vector<Pair> many(9, Pair{&x, &x});
      expect_error(ErrorCode::invalid_argument, "9 dots at once", [&] { PendingDots<T> pending(many); });
    });
  });
}

TEST(Reductions, PendingDotsRefuseMixedMasks) {
  comm::run_threads(3, [](comm::Communicator& world) {
    using Pair = PendingDots<double>::Pair;
    const auto filled_with = [&](std::vector<int> mask) {
      auto x = filled<double>(world, Layout::split({7}, 3));
      if (!mask.empty()) x.set_mask(mask);
      return x;
    };
    const auto plain = filled_with({}), pair = filled_with({0, 0, 1}), same = filled_with({0, 0, 1}),
               other = filled_with({0, 1, 1});
    const auto local = filled<double>(world, Layout::replicated({3}, 3));
    const auto dots_of = [&](const DistributedArray<double>& x, const DistributedArray<double>& y) {
      const Pair pairs[] = {{&x, &x}, {&y, &y}};
      return [pairs] { PendingDots<double> pending(pairs); };
    };
    expect_error(ErrorCode::invalid_argument, "the mask 0, 0, 1 and with no mask", dots_of(pair, plain));
    expect_error(ErrorCode::invalid_argument, "the mask 0, 0, 1 and with the mask 0, 1, 1",
                 dots_of(pair, other));
    // Equal masks are one, and what every rank holds needs none.
    const Pair pairs[] = {{&local, &local}, {&pair, &pair}, {&same, &same}};
    PendingDots<double> pending(pairs);
    const std::span<const double> dots = pending.wait();
    EXPECT_EQ(dots[0], dot(local, local));
    EXPECT_EQ(dots[1], dot(pair, pair));
    EXPECT_EQ(dots[2], dots[1]);
  });
}

TEST(Updates, AreWhatTheirFormulasSay) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      T a(2), b(-3);
      if constexpr (is_complex<T>) a = T(2, 1), b = T(-3, 2);
      for (const Index n : {0, 1, world.size() - 1, 333})
        for (const Layout& layout : many_layouts(n, world.size())) {
          const auto x = filled<T>(world, layout);
          auto y = DistributedArray<T>(x * x);
          axpby(a, x, b, y);
          std::vector<T> expected;
          for (const T& v : testing::values<T>(layout.size())) expected.push_back(a * v + b * (v * v));
          EXPECT_EQ(y.to_full(), expected);
          y.fill(T(1));
          const Real<T> found = axpy_norm2(a, x, y);
          double squares = 0;
          for (const T& v : y.to_full()) squares += static_cast<double>(std::norm(v));
          EXPECT_EQ(static_cast<double>(found), static_cast<double>(static_cast<Real<T>>(squares)));
          EXPECT_EQ(y.to_full(), DistributedArray<T>(a * x + T(1)).to_full());
        }
    });
  });
}

}  // namespace
}  // namespace shoal::array
