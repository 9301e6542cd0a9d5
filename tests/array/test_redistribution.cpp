// SPDX-License-Identifier: Apache-2.0
#include "shoal/array/redistribution.h"

#include "array/support.h"

namespace shoal::array {
namespace {

using testing::expect_error;
using testing::filled;
using testing::for_each_type;
using testing::on_ranks;
using testing::values;

TEST(Redistribution, BetweenAllPairsOfLayouts) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      if (!std::is_same_v<T, double> && world.size() != 3) return;  // the type changes nothing but sizes
      for (const Shape& shape : {Shape{7, 5, 9}, Shape{2, 3, 1}, Shape{0, 2, 4}}) {
        const std::vector<Layout> all = testing::layouts(shape, world.size());
        for (const Layout& from : all)
          for (const Layout& to : all) {
            SCOPED_TRACE(from.describe() + " to " + to.describe());
            const auto x = filled<T>(world, from);
            Redistribution<T> redistribution(world, from, to);
            DistributedArray<T> y(world, to);
            for (int times = 0; times < 2; ++times) {
              y.fill(T(99));
              redistribution.run(x, y);
              const auto expected = filled<T>(world, to);
              ASSERT_TRUE(std::equal(y.local().begin(), y.local().end(), expected.local().begin()));
            }
          }
      }
    });
  });
}

TEST(Redistribution, RefusesWhatDoesNotFit) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout rows = Layout::split({4, 6}, 2), columns = Layout::split({4, 6}, 2, 1);
    Redistribution<double> redistribution(world, rows, columns);
    DistributedArray<double> x(world, rows), y(world, columns);
    expect_error(ErrorCode::invalid_argument, "redistribution: input", [&] { redistribution.run(y, y); });
    expect_error(ErrorCode::invalid_argument, "redistribution: output", [&] { redistribution.run(x, x); });
    auto view = DistributedArray<double>::adopt(world, columns, x.local());
    expect_error(ErrorCode::invalid_argument, "share memory", [&] { redistribution.run(x, view); });
    expect_error(ErrorCode::invalid_argument, "the shapes differ", [&] {
      Redistribution<double>(world, rows, Layout::split({6, 4}, 2));
    });
    expect_error(ErrorCode::invalid_argument, "on a communicator of 2", [&] {
      Redistribution<double>(world, Layout::split({4, 6}, 3), Layout::split({4, 6}, 3));
    });
    expect_error(ErrorCode::invalid_argument, "ask its members",
                 [&] { Redistribution<double>(world, Layout::stack({rows}), rows); });
  });
}

TEST(Redistribution, KeepsTheMask) {
  comm::run_threads(2, [](comm::Communicator& world) {
    DistributedArray<double> x(world, Layout::split({4, 6}, 2));
    x.fill(1);
    const int colors[] = {0, 1};
    x.set_mask(colors);
    EXPECT_EQ(dot(x, x), 12);
    const auto y = redistribute(x, Layout::split({4, 6}, 2, 1));
    EXPECT_EQ(dot(y, y), 12);
  });
}

TEST(Reshape, KeepsTheOrderOfElements) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      if (!std::is_same_v<T, double> && world.size() != 3) return;
      for (const auto& [shape, other] : {std::pair{Shape{6, 4, 5}, Shape{10, 12}},
                                         {Shape{1, 3}, Shape{3, 1}},
                                         {Shape{0, 4}, Shape{5, 0}},
                                         {Shape{120}, Shape{2, 3, 4, 5}}})
        for (const Layout& from : testing::layouts(shape, world.size())) {
          const auto x = filled<T>(world, from);
          const auto flat = ravel(x);
          SCOPED_TRACE(from.describe());
          EXPECT_EQ(flat.layout().axes(), 1);
          EXPECT_EQ(flat.layout().is_replicated(), from.is_replicated());
          EXPECT_EQ(flat.to_full(), values<T>(from.size()));
          for (const Layout& to : testing::layouts(other, world.size())) {
            SCOPED_TRACE(to.describe());
            const auto y = reshape(x, to);
            EXPECT_EQ(y.layout(), to);
            ASSERT_EQ(y.to_full(), values<T>(from.size()));
          }
        }
      const auto x = filled<T>(world, Layout::split({4}, world.size()));
      expect_error(ErrorCode::invalid_argument, "4 elements and 5",
                   [&] { reshape(x, Layout::split({5}, world.size())); });
    });
  });
}

}  // namespace
}  // namespace shoal::array
