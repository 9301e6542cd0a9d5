// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "shoal/solver/power_iteration.h"
#include "solver/support.h"

namespace shoal::solver {
namespace {

using namespace testing;

template <class T>
class PowerIterationOf : public ::testing::Test {};
TYPED_TEST_SUITE(PowerIterationOf, ElementTypes);

template <class T>
PowerOptions options() {
  return {.max_iterations = 500, .tolerance = sizeof(Real<T>) == 4 ? 1e-6 : 1e-12};
}

TYPED_TEST(PowerIterationOf, FindsPositiveAndNegativeEigenvalues) {
  using T = TypeParam;
  for (const double largest : {7.0, -7.0}) {
    const Dense<T> matrix =
        with_eigenvalues<T>({T(static_cast<Real<T>>(largest)), T(4), T(-3), T(1), T(0), T(2)});
    on_ranks([&](comm::Communicator& world) {
      for (const Layout& layout : row_layouts(6, world.size())) {
        const auto a = gathered(world, matrix, layout, layout);
        const auto found = power_iteration(a, options<T>());
        EXPECT_EQ(found.stop, Stop::converged) << layout.describe();
        EXPECT_NEAR(std::abs(found.value - T(static_cast<Real<T>>(largest))), 0, 10 * comparing<T>);
        const DistributedArray<T> rest = a(found.vector) - found.value * found.vector;
        EXPECT_NEAR(norm(rest), 0, sizeof(Real<T>) == 4 ? 0.02 : 2e-5);
        EXPECT_NEAR(norm(found.vector), 1, comparing<T>);
      }
    });
  }
}

TYPED_TEST(PowerIterationOf, FindsComplexEigenvalues) {
  using T = TypeParam;
  if constexpr (is_complex<T>) {
    const Dense<T> matrix = with_eigenvalues<T>({T(3, -4), T(0, 3), T(-2, 1), T(1, 0)});
    on_ranks([&](comm::Communicator& world) {
      const Layout layout = Layout::split({4}, world.size());
      const auto found = power_iteration(gathered(world, matrix, layout, layout), options<T>());
      EXPECT_EQ(found.stop, Stop::converged);
      EXPECT_NEAR(std::abs(found.value - T(3, -4)), 0, 10 * comparing<T>);
    });
  } else {
    const Dense<T> matrix = Dense<T>::numbered(6, 4, 2);
    on_ranks([&](comm::Communicator& world) {
      const auto a =
          gathered(world, matrix, Layout::split({4}, world.size()), Layout::split({6}, world.size()));
      const double squared = largest_squared_singular_value(a, options<T>());
      const Layout layout = Layout::split({4}, world.size());
      const auto normal = gathered(world, matrix.transpose() * matrix, layout, layout);
      EXPECT_NEAR(squared, static_cast<double>(power_iteration(normal, options<T>()).value),
                  squared * comparing<T>);
    });
  }
}

TEST(PowerIteration, BeginsAlikeOnEveryNumberOfRanks) {
  std::vector<double> serial;
  on_ranks([&](comm::Communicator& world) {
    const auto found = power_iteration(linop::identity<double>(world, Layout::split({20}, world.size())),
                                       {.max_iterations = 1});
    const std::vector<double> vector = found.vector.to_full();
    if (world.size() == 1) serial = vector;
    expect_close(vector, serial, "the start");
  });
}

TEST(PowerIteration, DoesNotTakeAPairForOne) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({4}, 2);
    const auto matrix = with_eigenvalues<double>({2, -2, 0.5, 0.1});
    const auto found = power_iteration(gathered(world, matrix, layout, layout), {.max_iterations = 60});
    EXPECT_EQ(found.stop, Stop::iteration_limit);
    EXPECT_EQ(found.iterations, 60);
    const auto nothing = power_iteration(gathered(world, Dense<double>(4, 4), layout, layout));
    EXPECT_EQ(nothing.stop, Stop::breakdown);
    const auto infinite = power_iteration(gathered(
        world, scaled(identity_matrix<double>(4), std::numeric_limits<double>::infinity()), layout, layout));
    EXPECT_EQ(infinite.stop, Stop::non_finite);
  });
}

}  // namespace
}  // namespace shoal::solver
