// SPDX-License-Identifier: Apache-2.0
// ISTA and FISTA: thresholds against their definition, closed forms, recovery, and their rules for stopping.
#include <gtest/gtest.h>

#include "shoal/linop/stacks.h"
#include "shoal/solver/ista.h"
#include "solver/support.h"
#include "solver/threshold.h"

namespace shoal::solver {
namespace {

using namespace testing;

constexpr Threshold kinds[] = {Threshold::soft, Threshold::hard, Threshold::half};

template <class T>
class IstaOf : public ::testing::Test {};
TYPED_TEST_SUITE(IstaOf, ElementTypes);

double penalty_of(Threshold kind, double z) {
  switch (kind) {
    case Threshold::soft: return z;
    case Threshold::hard: return z == 0 ? 0 : 1;
    case Threshold::half: return std::sqrt(z);
  }
  return 0;
}

// The minimiser of (z - m)^2 / 2 + t penalty(z) over z >= 0, by trying.
double best_of_many(Threshold kind, double t, double m) {
  double best = 0, least = m * m / 2;
  for (int i = 1; i <= 400000; ++i) {
    const double z = m * i / 400000, value = (z - m) * (z - m) / 2 + t * penalty_of(kind, z);
    if (value < least) {
      least = value;
      best = z;
    }
  }
  return best;
}

TYPED_TEST(IstaOf, ThresholdsMinimise) {
  using T = TypeParam;
  for (const Threshold kind : kinds)
    for (const double t : {0.3, 1.7})
      for (const double m : {0.0, 0.2, 0.6, 0.75, 1.1, 2.5, 9.0}) {
        const double expected = m == 0 ? 0 : best_of_many(kind, t, m);
        // Alone, and as the third of eleven: whole vectors and what is left of them.
        std::vector<T> x(11, make<T>(0, 0));
        const T direction = is_complex<T> ? make<T>(0.6, -0.8) : make<T>(-1, 0);
        x[2] = x[10] = direction * static_cast<Real<T>>(m);
        double sum = 2 * penalty_of(kind, expected);
        apply_threshold(kind, t, x.data(), x.size());
        for (const std::size_t i : {std::size_t{2}, std::size_t{10}})
          EXPECT_NEAR(std::abs(x[i] - direction * static_cast<Real<T>>(expected)), 0, 1e-4)
              << static_cast<int>(kind) << " " << t << " " << m;
        EXPECT_EQ(x[3], T(0));
        EXPECT_NEAR(penalty(kind, x.data(), x.size()), sum, 1e-3);
      }
}

// min |b - Q x|^2 / 2 + epsilon penalty(x) for unitary Q is the threshold of Q^H b.
TYPED_TEST(IstaOf, SolvesUnitaryProblemsByOneThreshold) {
  using T = TypeParam;
  const Index n = 12;
  const Dense<T> matrix = reflection<T>(n);
  const std::vector<T> b = numbers<T>(n, 1);
  on_ranks([&](comm::Communicator& world) {
    for (const Layout& layout : row_layouts(n, world.size()))
      for (const Threshold kind : kinds)
        for (const bool accelerated : {false, true}) {
          const auto a = gathered(world, matrix, layout, layout);
          const auto data = array_of(world, layout, b);
          std::vector<T> expected = a.adjoint_of(data).to_full();
          apply_threshold(kind, 0.8, expected.data(), expected.size());
          const IstaOptions<T> options{.epsilon = 0.8, .threshold = kind, .step = 1, .tolerance = 1e-6};
          const auto result = accelerated ? fista(a, data, options) : ista(a, data, options);
          EXPECT_EQ(result.stop, Stop::converged) << layout.describe();
          expect_close(result.x.to_full(), expected, layout.describe(), comparing<T>);
          // The history holds the objective.
          const DistributedArray<T> residual = data - a(result.x);
          const double r = norm(residual);
          EXPECT_NEAR(result.history.back(),
                      r * r / 2 + 0.8 * penalty(kind, expected.data(), expected.size()), 1e-3);
          EXPECT_NEAR(result.residual_norm, r, 1e-3);
        }
  });
}

// With S unitary: c = threshold of (A S)^H b, x = S c.
TYPED_TEST(IstaOf, ThresholdsCoefficientsOfASparsifier) {
  using T = TypeParam;
  const Index n = 9;
  std::vector<T> signs;
  for (Index i = 0; i < n; ++i) signs.push_back(T(i % 2 == 0 ? 1 : -1));
  const Dense<T> matrix = reflection<T>(n), other = with_eigenvalues(signs);
  on_ranks(
      [&](comm::Communicator& world) {
        const Layout layout = Layout::split({n}, world.size()),
                     coefficients = Layout::replicated({n}, world.size());
        const auto a = gathered(world, matrix, layout, layout);
        const auto s = gathered(world, other, coefficients, layout);
        const auto data = array_of(world, layout, numbers<T>(n, 3));
        DistributedArray<T> c = (a * s).adjoint_of(data);
        apply_threshold(Threshold::soft, 0.5, c.local().data(), c.local().size());
        const auto result = ista(a, data, {.epsilon = 0.5, .sparsifier = s, .step = 1, .tolerance = 1e-6});
        EXPECT_EQ(result.stop, Stop::converged);
        expect_close(result.x.to_full(), s(c).to_full(), "x = S c", comparing<T>);
      },
      {1, 2, 4});
}

TYPED_TEST(IstaOf, RecoversSpikes) {
  using T = TypeParam;
  // 30 measurements of 50 elements, three of them not zero.
  Dense<T> matrix(30, 50);
  comm::run_threads(1, [&](comm::Communicator& world) {
    matrix.elements = random_array<T>(world, Layout::split({1500}, 1), 11).to_full();
  });
  matrix.elements = scaled(matrix.elements, 1 / std::sqrt(30.0));
  std::vector<T> spikes(50, T(0)), b(30);
  spikes[7] = make<T>(2, 1);
  spikes[23] = make<T>(-1.5, 0.5);
  spikes[41] = make<T>(1, -2);
  matrix.apply(spikes, b);
  on_ranks(
      [&](comm::Communicator& world) {
        const Layout domain = Layout::split({50}, world.size()), range = Layout::split({30}, world.size());
        const auto a = gathered(world, matrix, domain, range);
        const auto data = array_of(world, range, b);
        const IstaOptions<T> options{.max_iterations = 3000, .epsilon = 0.02, .tolerance = 1e-6};
        const auto slow = ista(a, data, options), fast = fista(a, data, options);
        expect_close(slow.x.to_full(), spikes, "ista", 0.05);
        expect_close(fast.x.to_full(), spikes, "fista", 0.05);
        EXPECT_LT(fast.iterations, slow.iterations);
        for (std::size_t i = 1; i < slow.history.size(); ++i)
          EXPECT_LE(slow.history[i], slow.history[i - 1] * (1 + 1e-5)) << "ista's objective never grows";
      },
      {1, 3});
}

class Ista : public ::testing::Test {
 protected:
  // A diagonal problem on two ranks.
  static void with_problem(
      const std::function<void(const AnyOperator<double>&, const DistributedArray<double>&)>& body) {
    comm::run_threads(2, [&](comm::Communicator& world) {
      const Layout layout = Layout::split({4}, 2);
      Dense<double> matrix(4, 4);
      for (Index i = 0; i < 4; ++i) matrix.at(i, i) = 1.0 / static_cast<double>(i + 1);
      body(gathered(world, matrix, layout, layout), array_of(world, layout, std::vector<double>{1, 2, 3, 4}));
    });
  }
};

TEST_F(Ista, StopsWhereTheCostStandsStill) {
  with_problem([](const auto& a, const auto& b) {
    const auto result = ista(a, b, {.max_iterations = 1000, .tolerance = 0, .cost_tolerance = 1e-4});
    EXPECT_EQ(result.stop, Stop::converged);
    const auto& h = result.history;
    for (std::size_t i = 1; i < h.size(); ++i)
      EXPECT_EQ(std::abs(h[i] - h[i - 1]) <= 1e-4 * h[i - 1], i + 1 == h.size()) << i;
  });
}

TEST_F(Ista, StopsWhereTheResidualGrows) {
  with_problem([](const auto& a, const auto& b) {
    const auto result = ista(a, b, {.epsilon = 0, .step = 2.5, .growth_limit = 3});
    EXPECT_EQ(result.stop, Stop::diverging);
    EXPECT_GT(result.residual_norm, 3 * norm(b) * 0.01);
    EXPECT_EQ(ista(a, b, {.epsilon = 0, .step = 2.5}).stop, Stop::iteration_limit);
  });
}

TEST_F(Ista, DecayLowersTheThreshold) {
  with_problem([](const auto& a, const auto& b) {
    // The last factor, 0, holds on: what is left is least squares.
    const auto result = fista(
        a, b, {.max_iterations = 2000, .epsilon = 10, .step = 0.9, .decay = {1, 0.5, 0}, .tolerance = 1e-13});
    expect_close(result.x.to_full(), std::vector<double>{1, 4, 9, 16}, "decay", 1e-6);
    const auto first = ista(a, b, {.max_iterations = 1, .epsilon = 10, .step = 0.9, .decay = {0}});
    EXPECT_GT(norm(first.x), 0);
    EXPECT_EQ(norm(ista(a, b, {.epsilon = 10, .step = 0.9}).x), 0);
  });
}

TEST_F(Ista, FindsItsStep) {
  with_problem([](const auto& a, const auto& b) {
    // |A| = 1, so the first step leads to 0.95 A^H b.
    const auto result = ista(a, b, {.max_iterations = 1, .epsilon = 0, .power = {.tolerance = 1e-12}});
    expect_close(result.x.to_full(), std::vector<double>{0.95, 0.95, 0.95, 0.95}, "step", 1e-6);
  });
}

TEST_F(Ista, RefusesWhatMakesNoSense) {
  with_problem([](const auto& a, const auto& b) {
    expect_contains(error_of([&] { (void)ista(a, b, {.step = -1}); }), {"step", "-1"});
    expect_contains(error_of([&] { (void)ista(a, b, {.epsilon = -2}); }), {"epsilon", "-2"});
    const auto wrong = linop::identity<double>(a.communicator(), Layout::split({5}, 2));
    expect_contains(error_of([&] { (void)ista(a, b, {.sparsifier = wrong}); }), {"sparsifier", "5", "4"});
  });
}

}  // namespace
}  // namespace shoal::solver
