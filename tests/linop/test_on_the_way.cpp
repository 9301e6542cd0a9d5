// SPDX-License-Identifier: Apache-2.0
// What is done on the way of an application: once for each element, and as if before and after it. Parts are
// large enough for sweeps that write past the caches, which do it piece by piece.
#include <gtest/gtest.h>

#include "linop/operator_checks.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/stacks.h"

namespace shoal::linop {
namespace {

using namespace checks;

// Applies `a` while its input is being set, from nothing, and its output is doubled.
template <class T>
void expect_on_the_way(const AnyOperator<T>& a, const std::string& what) {
  SCOPED_TRACE(what);
  const DistributedArray<T> values = random_array<T>(a.communicator(), a.domain(), 3);
  DistributedArray<T> x = poisoned<T>(a.communicator(), a.domain()),
                      y = poisoned<T>(a.communicator(), a.range());
  std::vector<int> read(x.local().size(), 0), written(y.local().size(), 0);
  const OnTheWay<T> way{.in =
                            [&](std::size_t first, std::size_t count) {
                              for (std::size_t i = first; i < first + count; ++i) {
                                ++read.at(i);
                                x[i] = values[i];
                              }
                            },
                        .out =
                            [&](std::size_t first, std::size_t count, T* elements) {
                              for (std::size_t i = 0; i < count; ++i) {
                                ++written.at(first + i);
                                elements[i] *= T(2);
                              }
                            }};
  a.apply(x, y, way);
  EXPECT_TRUE(std::ranges::all_of(read, [](int times) { return times == 1; }));
  EXPECT_TRUE(std::ranges::all_of(written, [](int times) { return times == 1; }));
  const DistributedArray<T> expected = T(2) * a(values);
  EXPECT_TRUE(std::ranges::equal(y.local(), expected.local()));
}

template <class T>
void expect_both_ways(const AnyOperator<T>& a, const std::string& what) {
  expect_on_the_way(a, what);
  expect_on_the_way(adjoint(a), what + ", adjoint");
}

TEST(OnTheWay, LargeStencilsWhateverIsSplit) {
  on_ranks(
      [](comm::Communicator& world) {
        const Shape shape{41 * world.size(), 121, 113};
        for (const int split : {0, 1, 2}) {
          const Layout layout = Layout::split(shape, world.size(), split);
          const std::string where = layout.describe();
          expect_both_ways(laplacian<double>(world, layout, {.axes = {0, 1, 2}, .edge = true}),
                           "Laplacian, " + where);
          expect_both_ways(gradient<double>(world, layout, {.kind = Difference::forward}),
                           "gradient, " + where);
        }
      },
      {2});
}

TEST(OnTheWay, OneAxisAndComplexElements) {
  on_ranks(
      [](comm::Communicator& world) {
        using T = std::complex<float>;
        const Shape shape{47 * world.size(), 103, 119};
        for (const int split : {0, 1})
          for (const int axis : {0, 1, 2})
            expect_both_ways(first_derivative<T>(world, Layout::split(shape, world.size(), split), axis,
                                                 {.order = 5, .edge = true}),
                             "split along " + std::to_string(split) + ", axis " + std::to_string(axis));
        // A large plane, which is swept in pieces.
        const Shape flat{5, 700 * world.size(), 201};
        for (const int split : {0, 1})
          expect_both_ways(laplacian<T>(world, Layout::split(flat, world.size(), split), {.axes = {0, 1, 2}}),
                           "flat, split along " + std::to_string(split));
      },
      {2});
}

TEST(OnTheWay, SmallOperatorsOfAnyKind) {
  on_ranks([](comm::Communicator& world) {
    const Layout layout = Layout::split({7, 5}, world.size());
    expect_both_ways(laplacian<double>(world, layout), "small Laplacian");
    expect_both_ways(vertical_stack<double>(world, {Dense<double>::numbered(world.rank(), 4, 2)}), "a stack");
    expect_both_ways(3.0 * first_derivative<double>(world, layout), "scaled");
  });
}

TEST(OnTheWay, NothingNeedsToBeDone) {
  comm::run_threads(2, [](comm::Communicator& world) {
    for (const Index rows : {6, 6000}) {
      const Layout layout = Layout::split({rows, 300}, 2);
      const auto a = laplacian<double>(world, layout);
      const auto x = random_array<double>(world, layout, 1);
      auto y = poisoned<double>(world, layout);
      a.apply(x, y, {});
      EXPECT_TRUE(std::ranges::equal(y.local(), a(x).local()));
    }
  });
}

}  // namespace
}  // namespace shoal::linop
