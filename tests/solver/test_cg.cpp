// SPDX-License-Identifier: Apache-2.0
// CG in both variants against elimination.
#include <gtest/gtest.h>

#include "shoal/linop/derivatives.h"
#include "shoal/solver/cg.h"
#include "solver/support.h"

namespace shoal::solver {
namespace {

using namespace testing;

constexpr Variant variants[] = {Variant::standard, Variant::pipelined};

template <class T>
class CgOf : public ::testing::Test {};
TYPED_TEST_SUITE(CgOf, ElementTypes);

template <class T>
std::vector<T> spread_eigenvalues(Index n, double sign) {
  std::vector<T> values;
  for (Index i = 0; i < n; ++i)
    values.push_back(T(static_cast<Real<T>>(sign * (1 + 0.5 * static_cast<double>(i)))));
  return values;
}

TYPED_TEST(CgOf, SolvesWhatEliminationSolvesInEveryLayout) {
  using T = TypeParam;
  const Index n = 13;
  for (const double sign : {1.0, -1.0}) {
    const Dense<T> matrix = with_eigenvalues(spread_eigenvalues<T>(n, sign));
    const std::vector<T> b = numbers<T>(n, 1), expected = eliminate(matrix, b);
    on_ranks([&](comm::Communicator& world) {
      for (const Layout& layout : row_layouts(n, world.size()))
        for (const Variant variant : variants) {
          const auto a = gathered(world, matrix, layout, layout);
          const auto data = array_of(world, layout, b);
          const auto result = cg(a, data, {.tolerance = solving<T>, .variant = variant});
          EXPECT_EQ(result.stop, Stop::converged) << to_string(result.stop) << ", " << layout.describe();
          expect_close(result.x.to_full(), expected, layout.describe(), comparing<T>);
          EXPECT_EQ(result.history.size(), static_cast<std::size_t>(result.iterations) + 1);
          EXPECT_LE(result.residual_norm, solving<T> * norm(data));
          EXPECT_EQ(result.history.back(), result.residual_norm);
        }
    });
  }
}

TYPED_TEST(CgOf, BeginsAtX0) {
  using T = TypeParam;
  const Index n = 9;
  const Dense<T> matrix = with_eigenvalues(spread_eigenvalues<T>(n, 1));
  const std::vector<T> b = numbers<T>(n, 2), expected = eliminate(matrix, b);
  on_ranks(
      [&](comm::Communicator& world) {
        const Layout layout = Layout::split({n}, world.size());
        const auto a = gathered(world, matrix, layout, layout);
        const auto data = array_of(world, layout, b);
        for (const Variant variant : variants) {
          const CgOptions<T> options{.tolerance = 10 * solving<T>, .variant = variant};
          const auto from_far = cg(a, data, array_of(world, layout, numbers<T>(n, 5)), options);
          EXPECT_EQ(from_far.stop, Stop::converged);
          expect_close(from_far.x.to_full(), expected, "from another start", comparing<T>);
          const auto from_solution = cg(a, data, array_of(world, layout, expected), options);
          EXPECT_EQ(from_solution.stop, Stop::converged);
          EXPECT_LE(from_solution.iterations, 2);
        }
      },
      {1, 3});
}

TYPED_TEST(CgOf, TakesAsManyStepsAsThereAreEigenvalues) {
  using T = TypeParam;
  const std::vector<T> eigenvalues{T(1), T(4), T(1), T(9), T(4), T(1), T(9), T(1), T(4), T(4)};
  const Dense<T> matrix = with_eigenvalues(eigenvalues);
  on_ranks(
      [&](comm::Communicator& world) {
        const Layout layout = Layout::split({10}, world.size());
        const auto a = gathered(world, matrix, layout, layout);
        for (const Variant variant : variants) {
          const auto result = cg(a, array_of(world, layout, numbers<T>(10, 3)),
                                 {.tolerance = sizeof(Real<T>) == 4 ? 2e-5 : 1e-12, .variant = variant});
          EXPECT_EQ(result.stop, Stop::converged);
          EXPECT_EQ(result.iterations, 3);
        }
      },
      {1, 4});
}

// On arrays that are zero at the border the Laplacian is symmetric.
TEST(Cg, SolvesPoissonsEquation) {
  const Shape shape{8, 9, 7};
  std::vector<double> expected(8 * 9 * 7, 0.0);
  for (Index i = 1; i < 7; ++i)
    for (Index j = 1; j < 8; ++j)
      for (Index k = 1; k < 6; ++k)
        expected[static_cast<std::size_t>((i * 9 + j) * 7 + k)] =
            static_cast<double>((i * 3 + j * 5 + k) % 8) - 3;
  on_ranks([&](comm::Communicator& world) {
    for (const Layout& layout : linop::checks::layouts_of(shape, world.size())) {
      const auto a = linop::laplacian<double>(world, layout, {.axes = {0, 1, 2}});
      const auto b = a(array_of(world, layout, expected));
      const auto result = cg(a, b, {.tolerance = 1e-12});
      EXPECT_EQ(result.stop, Stop::converged);
      expect_close(result.x.to_full(), expected, layout.describe(), 1e-10);
    }
  });
}

// Steps of x are put off to the next sweep, but whoever looks sees them done. Small, and so large that the
// sweep does them piece by piece.
TEST(Cg, XIsCurrentWheneverSomebodyLooks) {
  for (const Index extent : {9, 98})
    on_ranks(
        [&](comm::Communicator& world) {
          const Layout layout = Layout::split({extent, extent, extent}, world.size());
          const auto a = linop::laplacian<double>(world, layout, {.axes = {0, 1, 2}});
          const Shape shape{extent, extent, extent};
          std::vector<double> solution(static_cast<std::size_t>(extent * extent * extent), 0.0);
          for (Index i = 1; i < extent - 1; ++i)
            for (Index j = 1; j < extent - 1; ++j)
              for (Index k = 1; k < extent - 1; ++k)
                solution[static_cast<std::size_t>((i * extent + j) * extent + k)] =
                    static_cast<double>((i * 3 + j * 5 + k) % 8) - 3;
          const auto b = a(array_of(world, layout, solution));
          const auto expect_current = [&](const DistributedArray<double>& x, double residual_norm) {
            const DistributedArray<double> residual = b - a(x);
            EXPECT_NEAR(norm(residual), residual_norm, 1e-11 * norm(b));
          };
          auto solver = make_cg(a, {.max_iterations = 6, .tolerance = 0});
          solver->setup(b);
          for (int i = 0; solver->step(); ++i)
            if (i % 2 == 0) expect_current(solver->result().x, solver->result().residual_norm);
          expect_current(solver->finish().x, solver->result().residual_norm);
          const auto watched =
              cg(a, b, {.max_iterations = 6, .tolerance = 0, .callback = [&](const Iteration<double>& now) {
                          expect_current(now.x, now.residual_norm);
                          return Next::go_on;
                        }});
          const auto unwatched = cg(a, b, {.max_iterations = 6, .tolerance = 0});
          expect_current(unwatched.x, unwatched.residual_norm);
          EXPECT_EQ(watched.history, unwatched.history);
          EXPECT_TRUE(std::ranges::equal(watched.x.local(), unwatched.x.local()));
        },
        {1, 2});
}

TEST(Cg, PipelinedReplacementKeepsTheResidualTrue) {
  // Condition 1e6: without replacement the recurrences drift.
  const Index n = 60;
  std::vector<double> eigenvalues;
  for (Index i = 0; i < n; ++i) eigenvalues.push_back(std::pow(10.0, 6.0 * static_cast<double>(i) / (n - 1)));
  const Dense<double> matrix = with_eigenvalues(eigenvalues);
  on_ranks(
      [&](comm::Communicator& world) {
        const Layout layout = Layout::split({n}, world.size());
        const auto a = gathered(world, matrix, layout, layout);
        const auto b = array_of(world, layout, numbers<double>(n, 1));
        const auto gap = [&](int replace_every) {
          const auto result = cg(a, b,
                                 {.max_iterations = 400,
                                  .tolerance = 1e-11,
                                  .variant = Variant::pipelined,
                                  .replace_every = replace_every});
          DistributedArray<double> difference = b - a(result.x);
          return std::abs(norm(difference) - result.residual_norm) / norm(b);
        };
        EXPECT_LT(gap(10), gap(0));
        EXPECT_LT(gap(10), 1e-9);
      },
      {2});
}

TEST(Cg, RefusesWhatDoesNotFit) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout four = Layout::split({4}, 2), five = Layout::split({5}, 2);
    const auto tall = gathered(world, Dense<double>::numbered(5, 4, 1), four, five);
    const DistributedArray<double> b(world, five);
    expect_contains(error_of([&] { (void)cg(tall, b); }), {"domain", "range", "4", "5"});
    const auto square = linop::identity<double>(world, four);
    expect_contains(error_of([&] { (void)cg(square, b); }), {"data", "4", "5"});
    const DistributedArray<double> fits(world, four);
    expect_contains(error_of([&] { (void)cg(square, fits, b); }), {"start", "4", "5"});
    expect_contains(error_of([&] { (void)cg(square, fits, {.max_iterations = -1}); }),
                    {"max_iterations", "-1"});
  });
}

}  // namespace
}  // namespace shoal::solver
