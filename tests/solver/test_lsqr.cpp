// SPDX-License-Identifier: Apache-2.0
// LSQR against the normal equations solved by elimination, and against CGLS.
#include <gtest/gtest.h>

#include "shoal/solver/cgls.h"
#include "shoal/solver/lsqr.h"
#include "solver/support.h"

namespace shoal::solver {
namespace {

using namespace testing;

template <class T>
class LsqrOf : public ::testing::Test {};
TYPED_TEST_SUITE(LsqrOf, ElementTypes);

TYPED_TEST(LsqrOf, SolvesTheNormalEquationsInEveryLayout) {
  using T = TypeParam;
  const Dense<T> matrix = Dense<T>::numbered(14, 9, 3);
  const std::vector<T> b = numbers<T>(14, 1);
  for (const double damping : {0.0, 0.7}) {
    const std::vector<T> expected = least_squares(matrix, b, damping);
    on_ranks([&](comm::Communicator& world) {
      const auto domains = row_layouts(9, world.size()), ranges = row_layouts(14, world.size());
      for (std::size_t i = 0; i < domains.size(); ++i) {
        const Layout &domain = domains[i], &range = ranges[(i + 1) % ranges.size()];
        const std::string what = domain.describe() + " to " + range.describe();
        const auto a = gathered(world, matrix, domain, range);
        const auto data = array_of(world, range, b);
        const auto result = lsqr(a, data, {.tolerance = solving<T>, .damping = damping});
        EXPECT_EQ(result.stop, Stop::converged) << to_string(result.stop) << ", " << what;
        expect_close(result.x.to_full(), expected, what, comparing<T>);
        // The norms that it reports are those of the result.
        const DistributedArray<T> residual = data - a(result.x);
        EXPECT_NEAR(result.residual_norm, norm(residual), comparing<T> * norm(data)) << what;
        EXPECT_NEAR(result.history.back(), std::hypot(norm(residual), damping * norm(result.x)),
                    comparing<T> * norm(data));
      }
    });
  }
}

TYPED_TEST(LsqrOf, HasTheIteratesOfCgls) {
  using T = TypeParam;
  const Dense<T> matrix = Dense<T>::numbered(11, 8, 2);
  on_ranks(
      [&](comm::Communicator& world) {
        const Layout domain = Layout::split({8}, world.size()), range = Layout::split({11}, world.size());
        const auto a = gathered(world, matrix, domain, range);
        const auto data = array_of(world, range, numbers<T>(11, 4));
        for (const double damping : {0.0, 0.4})
          for (int steps = 0; steps <= 4; ++steps) {
            const auto one = cgls(a, data, {.max_iterations = steps, .tolerance = 0, .damping = damping});
            const auto other = lsqr(a, data, {.max_iterations = steps, .tolerance = 0, .damping = damping});
            EXPECT_EQ(other.stop, Stop::iteration_limit);
            expect_close(other.x.to_full(), one.x.to_full(), std::to_string(steps), comparing<T>);
            EXPECT_NEAR(other.residual_norm, one.residual_norm, comparing<T> * norm(data));
            EXPECT_NEAR(other.gradient_norm, one.gradient_norm, comparing<T> * one.history.front() * 10);
            EXPECT_NEAR(other.history.back(), one.history.back(), comparing<T> * norm(data));
          }
      },
      {1, 3});
}

TYPED_TEST(LsqrOf, WithAStartDampsTheDistanceToIt) {
  using T = TypeParam;
  const Dense<T> matrix = Dense<T>::numbered(7, 5, 1);
  const std::vector<T> b = numbers<T>(7, 4), x0 = numbers<T>(5, 2);
  std::vector<T> image(7), rest = b;
  matrix.apply(x0, image);
  for (std::size_t i = 0; i < 7; ++i) rest[i] -= image[i];
  for (const double damping : {0.0, 2.0}) {
    std::vector<T> expected = least_squares(matrix, rest, damping);
    for (std::size_t i = 0; i < 5; ++i) expected[i] += x0[i];
    on_ranks(
        [&](comm::Communicator& world) {
          const Layout domain = Layout::split({5}, world.size()), range = Layout::split({7}, world.size());
          const auto result =
              lsqr(gathered(world, matrix, domain, range), array_of(world, range, b),
                   array_of(world, domain, x0), {.tolerance = solving<T>, .damping = damping});
          EXPECT_EQ(result.stop, Stop::converged);
          expect_close(result.x.to_full(), expected, "from a start", comparing<T>);
        },
        {1, 3});
  }
}

}  // namespace
}  // namespace shoal::solver
