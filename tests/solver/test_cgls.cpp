// SPDX-License-Identifier: Apache-2.0
// CGLS in both variants, and LSQR, against the normal equations solved by elimination.
#include <gtest/gtest.h>

#include "shoal/solver/cgls.h"
#include "solver/support.h"

namespace shoal::solver {
namespace {

using namespace testing;

constexpr Variant variants[] = {Variant::standard, Variant::pipelined};

template <class T>
class CglsOf : public ::testing::Test {};
TYPED_TEST_SUITE(CglsOf, ElementTypes);

TYPED_TEST(CglsOf, SolvesTheNormalEquationsInEveryLayout) {
  using T = TypeParam;
  const Dense<T> matrix = Dense<T>::numbered(14, 9, 3);
  const std::vector<T> b = numbers<T>(14, 1);
  for (const double damping : {0.0, 0.7}) {
    const std::vector<T> expected = least_squares(matrix, b, damping);
    on_ranks([&](comm::Communicator& world) {
      const auto domains = row_layouts(9, world.size()), ranges = row_layouts(14, world.size());
      for (std::size_t i = 0; i < domains.size(); ++i)
        for (const Variant variant : variants) {
          const Layout &domain = domains[i], &range = ranges[(i + 1) % ranges.size()];
          const std::string what = domain.describe() + " to " + range.describe();
          const auto a = gathered(world, matrix, domain, range);
          const auto data = array_of(world, range, b);
          const auto result =
              cgls(a, data, {.tolerance = solving<T>, .damping = damping, .variant = variant});
          EXPECT_EQ(result.stop, Stop::converged) << to_string(result.stop) << ", " << what;
          expect_close(result.x.to_full(), expected, what, comparing<T>);
          // The norms that it reports are those of the result.
          const DistributedArray<T> residual = data - a(result.x);
          const DistributedArray<T> solution = result.x;
          EXPECT_NEAR(result.residual_norm, norm(residual), comparing<T> * norm(data)) << what;
          EXPECT_NEAR(result.history.back(), std::hypot(norm(residual), damping * norm(solution)),
                      comparing<T> * norm(data))
              << what;
          EXPECT_LE(result.gradient_norm, solving<T> * norm(a.adjoint_of(data)) * 1.001);
        }
    });
  }
}

TYPED_TEST(CglsOf, BeginsAtX0) {
  using T = TypeParam;
  const Dense<T> matrix = Dense<T>::numbered(11, 6, 2);
  const std::vector<T> b = numbers<T>(11, 4);
  on_ranks(
      [&](comm::Communicator& world) {
        const Layout domain = Layout::replicated({6}, world.size()),
                     range = Layout::split({11}, world.size());
        const auto a = gathered(world, matrix, domain, range);
        const auto data = array_of(world, range, b);
        for (const double damping : {0.0, 1.5})
          for (const Variant variant : variants) {
            const std::vector<T> expected = least_squares(matrix, b, damping);
            const CglsOptions<T> options{
                .tolerance = 10 * solving<T>, .damping = damping, .variant = variant};
            const auto from_far = cgls(a, data, array_of(world, domain, numbers<T>(6, 9)), options);
            EXPECT_EQ(from_far.stop, Stop::converged);
            expect_close(from_far.x.to_full(), expected, "from another start", comparing<T>);
            const auto from_solution = cgls(a, data, array_of(world, domain, expected), options);
            EXPECT_LE(from_solution.iterations, 2);
          }
      },
      {1, 3});
}

// As inversions use it: local blocks, a replicated model, A^H with a reduction of its own.
TYPED_TEST(CglsOf, SolvesVerticalStacks) {
  using T = TypeParam;
  on_ranks([&](comm::Communicator& world) {
    const Index rows = world.rank() == 1 ? 0 : 5 + world.rank();
    const auto a = linop::vertical_stack<T>(world, {Dense<T>::numbered(rows, 4, world.rank())});
    const auto b = random_array<T>(world, a.range(), 7);
    const auto expected = least_squares(linop::checks::dense_of(a), b.to_full(), 0);
    for (const Variant variant : variants) {
      const auto result = cgls(a, b, {.tolerance = solving<T>, .variant = variant});
      EXPECT_EQ(result.stop, Stop::converged);
      expect_close(result.x.to_full(), expected, "vertical stack", 5 * comparing<T>);
      check_replicas(result.x);
    }
  });
}

TEST(Cgls, StopsAtOnceWhereTheGradientIsZero) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout one = Layout::replicated({1}, 2), two = Layout::split({2}, 2);
    Dense<double> column(2, 1);
    column.at(0, 0) = 1;
    const auto a = gathered(world, column, one, two);
    for (const Variant variant : variants) {
      // b is orthogonal to the range of A.
      const auto orthogonal = cgls(a, array_of<double>(world, two, {0.0, 3.0}), {.variant = variant});
      EXPECT_EQ(orthogonal.stop, Stop::converged);
      EXPECT_EQ(orthogonal.iterations, 0);
      EXPECT_EQ(orthogonal.residual_norm, 3);
      const auto zero = cgls(a, array_of<double>(world, two, {0.0, 0.0}), {.variant = variant});
      EXPECT_EQ(zero.stop, Stop::converged);
      EXPECT_EQ(zero.x.to_full(), std::vector<double>{0.0});
    }
  });
}

}  // namespace
}  // namespace shoal::solver
