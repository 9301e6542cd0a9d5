// SPDX-License-Identifier: Apache-2.0
#include "shoal/array/layout.h"

#include <algorithm>
#include <numeric>

#include "array/support.h"

namespace shoal::array {
namespace {

using testing::expect_error;

TEST(Layout, BalancedExtentsOfAllSmallSizes) {
  for (Index n = 0; n <= 40; ++n)
    for (int parts = 1; parts <= 9; ++parts) {
      const std::vector<Index> extents = balanced_extents(n, parts);
      ASSERT_EQ(extents.size(), static_cast<std::size_t>(parts));
      EXPECT_EQ(std::accumulate(extents.begin(), extents.end(), Index{0}), n);
      EXPECT_LE(extents.front() - extents.back(), 1);
      EXPECT_TRUE(std::is_sorted(extents.rbegin(), extents.rend()));
    }
  EXPECT_EQ(balanced_extents(10, 3), (std::vector<Index>{4, 3, 3}));
  EXPECT_EQ(balanced_extents(10, 6), (std::vector<Index>{2, 2, 2, 2, 1, 1}));
}

TEST(Layout, SizesThatNobodyCanAllocate) {
  const Index n = (Index{1} << 33) + 5;
  const Layout layout = Layout::split({3, n}, 4, -1);
  EXPECT_EQ(layout.size(), 3 * n);
  Index begin = 0;
  for (Rank rank = 0; rank < 4; ++rank) {
    const Index extent = rank == 0 ? (Index{1} << 31) + 2 : (Index{1} << 31) + 1;
    EXPECT_EQ(layout.block(rank), (Block{{0, begin}, {3, extent}}));
    EXPECT_EQ(layout.local_size(rank), 3 * extent);
    begin += extent;
  }
  EXPECT_EQ(begin, n);
  EXPECT_EQ(Layout::blocks({n, 3}, {2, 3}).block(5), (Block{{n / 2 + 1, 2}, {n / 2, 1}}));
  EXPECT_EQ(size_of_shape(std::vector<Index>{Index{1} << 62, 0, Index{1} << 62}), 0);
  EXPECT_EQ(Layout::blocks({Index{1} << 62, Index{1} << 62, 0}, {1, 1, 2}).local_size(1), 0);
  expect_error(ErrorCode::invalid_argument, "2^63", [] {
    Layout::replicated({Index{1} << 32, Index{1} << 31}, 2);
  });
  const Index quarter = Index{1} << 62;  // four of them are 0 where a sum wraps around
  expect_error(ErrorCode::invalid_argument, "sum to more than its extent of 5", [&] {
    Layout::split_unevenly({5}, {quarter, quarter, quarter, quarter, 5});
  });
  expect_error(ErrorCode::invalid_argument, "2^63", [] {
    const Layout half = Layout::replicated({(Index{1} << 62)}, 1);
    Layout::stack({half, half});
  });
}

TEST(Layout, BlocksCoverTheArrayOnce) {
  for (const int ranks : {1, 2, 3, 4, 6, 8, 12})
    for (const Shape& shape : {Shape{7, 5, 9}, Shape{2, 1, 3}, Shape{0, 4, 4}})
      for (const Layout& layout : testing::layouts(shape, ranks)) {
        SCOPED_TRACE(layout.describe());
        EXPECT_EQ(layout.ranks(), ranks);
        if (layout.is_replicated()) continue;
        std::vector<int> owners(static_cast<std::size_t>(layout.size()), 0);
        for (Rank rank = 0; rank < ranks; ++rank) {
          const Block block = layout.block(rank);
          EXPECT_EQ(block.size(), layout.local_size(rank));
          EXPECT_EQ(layout.rank_at(layout.coordinates(rank)), rank);
          for (Index i = 0; i < block.extent[0]; ++i)
            for (Index j = 0; j < block.extent[1]; ++j)
              for (Index k = 0; k < block.extent[2]; ++k)
                ++owners[static_cast<std::size_t>(
                    ((block.begin[0] + i) * shape[1] + block.begin[1] + j) * shape[2] + block.begin[2] + k)];
        }
        EXPECT_EQ(std::count(owners.begin(), owners.end(), 1), layout.size());
      }
}

TEST(Layout, TheLastAxisOfTheGridIsTheFastest) {
  const Layout layout = Layout::blocks({7, 5, 9}, {2, 1, 3});
  EXPECT_EQ(layout.coordinates(4), (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(layout.block(4), (Block{{4, 0, 3}, {3, 5, 3}}));
  EXPECT_EQ(layout.split_axis(), std::nullopt);
  EXPECT_EQ(Layout::blocks({7, 5}, {1, 3}).split_axis(), 1);
  EXPECT_EQ(Layout::blocks({7, 5}, {1, 1}).split_axis(), 0);
  EXPECT_EQ(Layout::split({7, 5}, 1, 1).split_axis(), 1);
  EXPECT_EQ(Layout::replicated({7, 5}, 3).split_axis(), std::nullopt);
}

TEST(Layout, EqualityIsOfParts) {
  const Layout even = Layout::split({10, 3}, 3);
  EXPECT_EQ(even, Layout::split_unevenly({10, 3}, {4, 3, 3}));
  EXPECT_EQ(even, Layout::blocks({10, 3}, {3, 1}));
  EXPECT_FALSE(even == Layout::split_unevenly({10, 3}, {3, 4, 3}));
  EXPECT_FALSE(even == Layout::split({10, 3}, 3, 1));
  EXPECT_FALSE(Layout::split({10}, 1) == Layout::replicated({10}, 1));
  EXPECT_EQ(Layout::stack({even, even}), Layout::stack({Layout::blocks({10, 3}, {3, 1}), even}));
  EXPECT_FALSE(Layout::stack({even}) == even);
}

TEST(Layout, StacksAreTheirMembersOneAfterTheOther) {
  const Layout inner = Layout::stack({Layout::split({5}, 3), Layout::replicated({4}, 3)});
  const Layout layout = Layout::stack({Layout::split({2, 2}, 3), inner});
  EXPECT_EQ(layout.size(), 13);
  EXPECT_EQ(layout.local_size(0), 2 + 2 + 4);
  EXPECT_EQ(layout.local_size(2), 0 + 1 + 4);
  EXPECT_EQ(layout.member_offset(1, 0), 2);
  EXPECT_EQ(layout.member_offset(1, 2), 0);
  expect_error(ErrorCode::invalid_argument, "ask its members", [&] { (void)layout.shape(); });
  expect_error(ErrorCode::invalid_argument, "another number of ranks", [&] {
    Layout::stack({inner, Layout::split({5}, 2)});
  });
}

TEST(Layout, SaysWhatItIs) {
  EXPECT_EQ(Layout::split({300, 200, 200}, 4).describe(), "300×200×200 split along axis 0 over 4 ranks");
  EXPECT_EQ(Layout::split_unevenly({4, 2}, {1, 3}).describe(),
            "4×2 split along axis 0 over 2 ranks (parts of axis 0: 1, 3)");
  EXPECT_EQ(Layout::blocks({4, 4}, {2, 2}).describe(), "4×4 in blocks on a grid 2×2");
  EXPECT_EQ(Layout::replicated({}, 2).describe(), "scalar replicated on 2 ranks");
}

TEST(Layout, RefusesWhatMakesNoSense) {
  const auto refused = [](const std::string& part, const std::function<void()>& call) {
    expect_error(ErrorCode::invalid_argument, part, call);
  };
  refused("axis 2 of an array with 2 axes", [] { Layout::split({4, 4}, 2, 2); });
  refused("axis -3", [] { Layout::split({4, 4}, 2, -3); });
  refused("axis 0 of an array with 0 axes", [] { Layout::split({}, 2); });
  refused("sum to more than its extent of 4", [] { Layout::split_unevenly({4}, {2, 3}); });
  refused("sum to 3, but its extent is 4", [] { Layout::split_unevenly({4}, {2, 1}); });
  refused("extent -1", [] { Layout::split_unevenly({4}, {5, -1}); });
  refused("negative extent", [] { Layout::replicated({4, -4}, 2); });
  refused("over 0 parts", [] { Layout::split({4}, 0); });
  refused("over 0 ranks", [] { Layout::replicated({4}, 0); });
  refused("a grid of 1 axes", [] { Layout::blocks({4, 4}, {2}); });
  refused("no parts", [] { Layout::blocks_unevenly({4}, {{}}); });
  refused("without members", [] { Layout::stack({}); });
  refused("rank 2 of", [] { (void)Layout::split({4}, 2).block(2); });
  refused("not in the grid", [] {
    const int place[] = {2};
    (void)Layout::split({4}, 2).rank_at(place);
  });
  refused("4 split along axis 0 over 2 ranks and 5 split",
          [] { require_equal(Layout::split({4}, 2), Layout::split({5}, 2), "test"); });
}

}  // namespace
}  // namespace shoal::array
