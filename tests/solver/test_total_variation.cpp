// SPDX-License-Identifier: Apache-2.0
// The total variation of images: its value, and its proximal operator against a closed form, against other
// methods, and itself on any number of ranks.
#include <gtest/gtest.h>

#include "shoal/linop/derivatives.h"
#include "shoal/solver/proximal/functions.h"
#include "shoal/solver/proximal/primal_dual.h"
#include "shoal/solver/proximal/proximal_gradient.h"
#include "solver/support.h"

namespace shoal::solver {
namespace {

using namespace testing;

template <class T>
class TotalVariationOf : public ::testing::Test {};
TYPED_TEST_SUITE(TotalVariationOf, ElementTypes);

template <class T>
AnyOperator<T> differences(const comm::Communicator& world, const Layout& layout) {
  return linop::gradient<T>(world, layout, {.kind = linop::Difference::forward});
}

std::vector<Layout> image_layouts(const Shape& shape, int ranks) {
  std::vector<Index> uneven(static_cast<std::size_t>(ranks), 0);
  uneven.back() = shape[0];
  return {Layout::split(shape, ranks), Layout::split(shape, ranks, 1), Layout::split_unevenly(shape, uneven),
          Layout::replicated(shape, ranks)};
}

TYPED_TEST(TotalVariationOf, IsTheSumOfTheLengthsOfTheGradient) {
  using T = TypeParam;
  const Index rows = 4, cols = 5;
  const std::vector<T> x = numbers<T>(rows * cols, 2);
  double sum = 0;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) {
      const auto at = [&](Index r, Index c) { return x[static_cast<std::size_t>(r * cols + c)]; };
      const double down = i + 1 < rows ? std::abs(at(i + 1, j) - at(i, j)) : 0,
                   right = j + 1 < cols ? std::abs(at(i, j + 1) - at(i, j)) : 0;
      sum += std::hypot(down, right);
    }
  on_ranks([&](comm::Communicator& world) {
    for (const Layout& layout : image_layouts({rows, cols}, world.size()))
      EXPECT_NEAR(
          total_variation(differences<T>(world, layout), {.sigma = 0.5}).value(array_of(world, layout, x)),
          sum / 2, 1e-5)
          << layout.describe();
  });
}

// Two levels of n0 and n1 samples come nearer by weight / n0 and weight / n1 (along either axis).
TYPED_TEST(TotalVariationOf, BringsTwoLevelsNearer) {
  using T = TypeParam;
  const Index n0 = 5, n1 = 8;
  const double weight = 0.5, tau = 0.6;
  const T low = make<T>(1, 1), high = make<T>(2.5, -1), apart = high - low;
  const T way = apart * static_cast<Real<T>>(weight * tau / std::abs(apart));
  std::vector<T> step(static_cast<std::size_t>(n0), low);
  std::vector<T> expected(static_cast<std::size_t>(n0), low + way / static_cast<Real<T>>(n0));
  step.resize(static_cast<std::size_t>(n0 + n1), high);
  expected.resize(static_cast<std::size_t>(n0 + n1), high - way / static_cast<Real<T>>(n1));
  on_ranks([&](comm::Communicator& world) {
    for (const Shape& shape : {Shape{n0 + n1, 1}, Shape{1, n0 + n1}})
      for (const Layout& layout : image_layouts(shape, world.size())) {
        const auto f = total_variation(differences<T>(world, layout), {.sigma = weight, .tolerance = 1e-7});
        auto x = array_of(world, layout, step);
        auto z = poisoned<T>(world, layout);
        f.prox(x, tau, z);
        expect_close(z.to_full(), expected, layout.describe(), sizeof(Real<T>) == 4 ? 1e-3 : 1e-6);
        EXPECT_EQ(x.to_full(), step);
        f.prox(x, tau, x);
        expect_close(x.to_full(), expected, "in place, and warm", sizeof(Real<T>) == 4 ? 1e-3 : 1e-6);
      }
  });
}

// The tolerance is kept: nearer to the minimiser, which primal-dual finds, than it says.
TYPED_TEST(TotalVariationOf, IsAsNearToTheMinimiserAsItSays) {
  using T = TypeParam;
  on_ranks(
      [](comm::Communicator& world) {
        const Layout layout = Layout::split({9, 7}, world.size());
        const auto d = differences<T>(world, layout);
        const auto x = random_array<T>(world, layout, 5);
        const auto exact = primal_dual<T>(l2<T>({.b = x}), l21<T>(0.7), d, x,
                                          {.max_iterations = 5000, .tolerance = solving<T>});
        const bool single = sizeof(Real<T>) == 4;
        for (const double tolerance : single ? std::vector{3e-2, 1e-2} : std::vector{1e-2, 1e-4, 1e-6}) {
          auto z = poisoned<T>(world, layout);
          total_variation(d, {.sigma = 1, .tolerance = tolerance, .iterations = 20000}).prox(x, 0.7, z);
          const DistributedArray<T> difference = z - exact.x;
          EXPECT_LE(static_cast<double>(norm(difference)),
                    1.1 * tolerance * static_cast<double>(norm(x)) + (single ? 1e-4 : 1e-8))
              << tolerance;
        }
      },
      {1, 3});
}

// With a given step and number of iterations nothing is summed over ranks.
TYPED_TEST(TotalVariationOf, HasTheSameBitsOnAnyNumberOfRanks) {
  using T = TypeParam;
  const Shape shape{7, 5};
  on_ranks([&](comm::Communicator& world) {
    comm::Communicator self = linop::checks::alone(world);
    const TotalVariation options{.tolerance = 0, .iterations = 30, .step = 0.125};
    const auto run = [&](comm::Communicator& group, const Layout& layout) {
      const auto x = array_of(group, layout, numbers<T>(35, 1));
      auto z = poisoned<T>(group, layout);
      total_variation(differences<T>(group, layout), options).prox(x, 0.8, z);
      return z.to_full();
    };
    const std::vector<T> serial = run(self, Layout::split(shape, 1));
    EXPECT_NE(serial, numbers<T>(35, 1));
    for (const Layout& layout : image_layouts(shape, world.size()))
      EXPECT_EQ(run(world, layout), serial) << layout.describe();
  });
}

class TotalVariations : public ::testing::Test {};

// As g of the proximal gradient: the minimiser that primal-dual finds with the gradient apart.
TEST_F(TotalVariations, ServesTheProximalGradient) {
  on_ranks(
      [](comm::Communicator& world) {
        const Layout layout = Layout::split({6, 5}, world.size());
        const auto a = gathered(world, with_eigenvalues([] {
                                  std::vector<double> eigenvalues(30, 0.4);
                                  for (std::size_t i = 0; i < 30; i += 3) eigenvalues[i] = 1.3;
                                  return eigenvalues;
                                }()),
                                layout, layout);
        const auto b = random_array<double>(world, layout, 2);
        const auto d = differences<double>(world, layout);
        const DistributedArray<double> start(world, layout);
        const auto f = l2<double>({.op = a, .b = b});
        const auto direct =
            proximal_gradient(f, total_variation(d, {.sigma = 0.1, .tolerance = 1e-9, .iterations = 2000}),
                              start, {.max_iterations = 400, .acceleration = Acceleration::fista});
        const auto stacked = linop::stacked_vertical<double>({a, d});
        const auto apart = primal_dual(l2<double>({.sigma = 0}),
                                       separable_sum<double>({l2<double>({.b = b}), l21<double>(0.1)}),
                                       stacked, start, {.max_iterations = 20000});
        EXPECT_NEAR(direct.history.back(), apart.history.back(), 1e-6);
        expect_close(direct.x.to_full(), apart.x.to_full(), "the minimiser", 1e-4);
      },
      {1, 2});
}

TEST_F(TotalVariations, OfNothingThatVaries) {
  on_ranks(
      [](comm::Communicator& world) {
        for (const Shape& shape : {Shape{1}, Shape{0, 3}}) {
          const Layout layout = Layout::split(shape, world.size());
          const auto f = total_variation(differences<double>(world, layout));
          auto x = random_array<double>(world, layout, 1);
          const std::vector<double> before = x.to_full();
          EXPECT_EQ(f.value(x), 0);
          f.prox(x, 2, x);
          EXPECT_EQ(x.to_full(), before);
        }
      },
      {1, 2});
}

// A NaN comes out on every rank, and is gone the next time.
TEST_F(TotalVariations, ShowANaNAndForgetIt) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({6, 4}, 2);
    const auto f = total_variation(differences<double>(world, layout));
    auto x = random_array<double>(world, layout, 1), z = x, good = x;
    f.prox(x, 1, good);
    if (world.rank() == 1) x[3] = std::nan("");
    f.prox(x, 1, z);
    EXPECT_TRUE(std::isnan(z[0]));
    f.prox(random_array<double>(world, layout, 1), 1, z);
    expect_close(z.to_full(), good.to_full(), "afterwards", 1e-4);
  });
}

TEST_F(TotalVariations, RefuseWhatMakesNoSense) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({6, 4}, 2), other = Layout::split({5, 4}, 2);
    const auto d = differences<double>(world, layout);
    expect_contains(error_of([&] { (void)total_variation(linop::identity<double>(world, layout)); }),
                    {"total_variation", "6×4", "not a stack"});
    expect_contains(error_of([&] { (void)total_variation(d, {.sigma = -1}); }), {"total_variation", "-1"});
    DistributedArray<double> x(world, other);
    auto z = x;
    expect_contains(error_of([&] { total_variation(d).prox(x, 1, z); }), {"6×4", "5×4", "total_variation"});
  });
}

}  // namespace
}  // namespace shoal::solver
