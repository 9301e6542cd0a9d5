// SPDX-License-Identifier: Apache-2.0
// What results take over from the arrays that they are made of: masks, layouts, nesting.
#include "array/support.h"

namespace shoal::array {
namespace {

using namespace testing;

// The part of the job that a mask gives is made once, however many arrays are computed.
TEST(Likes, AHundredThousandMaskedResultsShareOneCommunicator) {
  comm::run_threads(2, [](comm::Communicator& world) {
    DistributedArray<double> x(world, Layout::split({4}, 2));
    x.fill(1);
    const int colors[] = {0, 1};
    x.set_mask(colors);
    DistributedArray<double> y = x;
    for (int i = 0; i < 100'000; ++i) {
      const DistributedArray<double> z = 0.5 * (x + y);
      y = z;
    }
    EXPECT_EQ(&y.reduction_communicator(), &x.reduction_communicator());
    EXPECT_EQ(dot(y, y), 2);
  });
}

TEST(Likes, KeepMaskAndLayout) {
  comm::run_threads(4, [](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      auto x = filled<T>(world, Layout::split_unevenly({9}, {4, 0, 3, 2}));
      const int colors[] = {0, 0, 1, 1};
      x.set_mask(colors);
      const auto zeros = zeros_like(x), empty = empty_like(x);
      EXPECT_EQ(zeros.to_full(), std::vector<T>(9));
      for (const auto* like : {&zeros, &empty}) {
        EXPECT_EQ(like->layout(), x.layout());
        EXPECT_EQ(&like->reduction_communicator(), &x.reduction_communicator());
      }
    });
  });
}

// Each group sums its replicas once, as does a job without a mask.
TEST(Likes, AMaskLeavesReplicasWhatTheyAre) {
  comm::run_threads(4, [](comm::Communicator& world) {
    DistributedArray<double> x(world, Layout::replicated({5}, 4));
    x.fill(2);
    const int colors[] = {0, 1, 1, 0};
    x.set_mask(colors);
    EXPECT_EQ(dot(x, x), 20);
    EXPECT_EQ(norm(x, norm_one), 10);
    EXPECT_EQ(norm(x, norm_zero), 5);
    // Of each group its own elements, where they are split.
    DistributedArray<double> y(world, Layout::split({8}, 4));
    y.fill(world.rank());
    y.set_mask(colors);
    const bool outer = world.rank() == 0 || world.rank() == 3;
    EXPECT_EQ(dot(y, y), outer ? 18 : 10);
    EXPECT_EQ(norm(y, norm_max), outer ? 3 : 2);
  });
}

TEST(Likes, OfNestedStacks) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      const Layout inner =
          Layout::stack({Layout::split({5}, world.size()), Layout::replicated({2}, world.size())});
      const auto x = filled<T>(world, Layout::stack({inner, Layout::split({3}, world.size())}));
      const auto zeros = zeros_like(x);
      EXPECT_EQ(zeros.layout(), x.layout());
      EXPECT_EQ(zeros.to_full(), std::vector<T>(10));
      const DistributedArray<T> sum = x + zeros - T(2) * x;
      std::vector<T> expected = values<T>(10);
      for (T& v : expected) v = -v;
      EXPECT_EQ(sum.to_full(), expected);
      EXPECT_EQ(norm(sum, norm_max), norm(x, norm_max));
    });
  });
}

}  // namespace
}  // namespace shoal::array
