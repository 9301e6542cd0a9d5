// SPDX-License-Identifier: Apache-2.0
// Redistribution as an operator: the same elements in global C order, between all pairs of layouts.
#include "linop/operator_checks.h"
#include "shoal/linop/stacks.h"

namespace shoal::linop::checks {
namespace {

template <class T>
class RedistributionOperator : public testing::Test {};
TYPED_TEST_SUITE(RedistributionOperator, ElementTypes);

TYPED_TEST(RedistributionOperator, BetweenAllPairsOfLayouts) {
  using T = TypeParam;
  on_ranks([](comm::Communicator& communicator) {
    const int ranks = communicator.size();
    std::vector<Layout> layouts = layouts_of({5, 4, 3}, ranks);
    layouts.push_back(Layout::split({60}, ranks));  // other shapes
    layouts.push_back(Layout::split({6, 10}, ranks, 1));
    layouts.push_back(Layout::replicated({60}, ranks));
    const auto same = [](const std::vector<T>& x) { return x; };
    for (const Layout& from : layouts)
      for (const Layout& to : layouts) {
        const AnyOperator<T> move = redistribution<T>(communicator, from, to);
        expect_operator<T, T>(move, same, same, from.describe() + " to " + to.describe());
      }
  });
}

// Data that lie otherwise than an operator wants them, on both sides.
TYPED_TEST(RedistributionOperator, AroundAnOperatorOfOtherLayouts) {
  using T = TypeParam;
  on_ranks([](comm::Communicator& communicator) {
    const int ranks = communicator.size(), rank = communicator.rank();
    // Blocks of sizes that a balanced split of 1-D data does not have.
    const AnyOperator<T> a =
        block_diagonal<T>(communicator, {Dense<T>::numbered(2 + rank % 3, 1 + 3 * (rank % 2), rank)});
    const Layout model = Layout::split({a.domain().size()}, ranks),
                 data = Layout::split({a.range().size()}, ranks);
    const AnyOperator<T> b = redistribution<T>(communicator, a.range(), data) * a *
                             redistribution<T>(communicator, model, a.domain());
    expect_matrix(b, dense_of(a), "redistributed");
  });
}

TEST(RedistributionErrors, NameBothLayouts) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const int ranks = communicator.size();
        expect_contains(error_of([&] {
                          redistribution<double>(communicator, Layout::split({7, 2}, ranks),
                                                 Layout::replicated({15}, ranks));
                        }),
                        {"7×2", "14", "15", "as many"});
      },
      {1, 2});
}

}  // namespace
}  // namespace shoal::linop::checks
