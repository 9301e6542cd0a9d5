// SPDX-License-Identifier: Apache-2.0
// Block diagonals, vertical and horizontal stacks: of local operators, of distributed ones, and what does not
// fit.
#include "linop/operator_checks.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/stacks.h"

namespace shoal::linop::checks {
namespace {

template <class T>
class Stacks : public testing::Test {};
TYPED_TEST_SUITE(Stacks, ElementTypes);

// Rank 1 has no block, the others one or two of changing height; `width` 0 lets the width change too.
template <class T>
std::vector<Dense<T>> blocks_of(int rank, Index width) {
  std::vector<Dense<T>> blocks;
  if (rank == 1) return blocks;
  for (int i = 0; i <= rank % 2; ++i)
    blocks.push_back(Dense<T>::numbered(1 + (rank + i) % 3, width == 0 ? 2 + i : width, 10 * rank + i));
  return blocks;
}

template <class T>
std::vector<AnyLocalOperator<T>> erased(const std::vector<Dense<T>>& blocks) {
  return {blocks.begin(), blocks.end()};
}

template <class T>
std::vector<Dense<T>> all_blocks(int ranks, Index width) {
  std::vector<Dense<T>> all;
  for (int rank = 0; rank < ranks; ++rank)
    for (Dense<T>& block : blocks_of<T>(rank, width)) all.push_back(std::move(block));
  return all;
}

template <class T>
Dense<T> diagonal_of(const std::vector<Dense<T>>& blocks) {
  Index rows = 0, cols = 0;
  for (const Dense<T>& block : blocks) {
    rows += block.height;
    cols += block.width;
  }
  Dense<T> whole(rows, cols);
  Index row = 0, col = 0;
  for (const Dense<T>& block : blocks) {
    for (Index i = 0; i < block.height; ++i)
      for (Index j = 0; j < block.width; ++j) whole.at(row + i, col + j) = block.at(i, j);
    row += block.height;
    col += block.width;
  }
  return whole;
}

template <class T>
Dense<T> column_of(const std::vector<Dense<T>>& blocks, Index width) {
  Dense<T> whole(0, width);
  for (const Dense<T>& block : blocks) {
    whole.height += block.height;
    whole.elements.insert(whole.elements.end(), block.elements.begin(), block.elements.end());
  }
  return whole;
}

TYPED_TEST(Stacks, OfLocalOperators) {
  using T = TypeParam;
  on_ranks([](comm::Communicator& communicator) {
    const int ranks = communicator.size(), rank = communicator.rank();
    expect_matrix(block_diagonal<T>(communicator, erased(blocks_of<T>(rank, 0))),
                  diagonal_of(all_blocks<T>(ranks, 0)), "block diagonal");
    const Dense<T> column = column_of(all_blocks<T>(ranks, 4), 4);
    const AnyOperator<T> vertical = vertical_stack<T>(communicator, erased(blocks_of<T>(rank, 4)));
    expect_matrix(vertical, column, "vertical stack");
    EXPECT_TRUE(vertical.domain().is_replicated());
    EXPECT_EQ(vertical.range().is_replicated(), false);

    std::vector<Dense<T>> lying = blocks_of<T>(rank, 4);
    for (Dense<T>& block : lying) block = block.transpose();
    const AnyOperator<T> horizontal = horizontal_stack<T>(communicator, erased(lying));
    expect_matrix(horizontal, column.transpose(), "horizontal stack");
    EXPECT_TRUE(horizontal.range().is_replicated());

    const Dense<T> single = Dense<T>::numbered(3, 5, 1);
    expect_matrix(on_replicas<T>(communicator, single), single, "on replicas");
    // Normal equations of the stack: sums over ranks between local products.
    expect_matrix(adjoint(vertical) * vertical, column.conjugate_transpose() * column, "normal equations");
  });
}

TYPED_TEST(Stacks, AdjointIsTheSameOnAllRanks) {
  using T = TypeParam;
  on_ranks([](comm::Communicator& communicator) {
    const AnyOperator<T> vertical =
        vertical_stack<T>(communicator, erased(blocks_of<T>(communicator.rank(), 4)));
    check_replicas(vertical.adjoint_of(random_array<T>(communicator, vertical.range(), 1)));
  });
}

TYPED_TEST(Stacks, OfDistributedOperators) {
  using T = TypeParam;
  on_ranks([](comm::Communicator& communicator) {
    const Layout layout = Layout::split({4, 3}, communicator.size());
    const AnyOperator<T> a = first_derivative<T>(communicator, layout, 0), b = T(2) * a;
    const AnyOperator<T> c = second_derivative<T>(communicator, layout, 1);
    const Dense<T> da = dense_of(a), dc = dense_of(c), db = dense_of(b);
    const AnyOperator<T> vertical = stacked_vertical<T>({a, b, c});
    EXPECT_EQ(vertical.range().members().size(), 3u);
    expect_matrix(vertical, column_of<T>({da, db, dc}, 12), "stacked vertical");
    expect_matrix(stacked_horizontal<T>({a, c}),
                  column_of<T>({da.transpose(), dc.transpose()}, 12).transpose(), "stacked horizontal");
    expect_matrix(stacked_block_diagonal<T>({a, c}), diagonal_of<T>({da, dc}), "stacked block diagonal");
    // Nested: a stack of stacks.
    expect_matrix(stacked_vertical<T>({vertical, vertical}), column_of<T>({da, db, dc, da, db, dc}, 12),
                  "nested");
  });
}

TEST(StackErrors, NameTheRankAndBothSizesOnAllRanks) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const int rank = communicator.rank();
        std::vector<AnyLocalOperator<double>> blocks{Dense<double>::numbered(2, 5, 1)};
        if (rank == 1) blocks = {Dense<double>::numbered(2, 5, 1), Dense<double>::numbered(2, 7, 1)};
        expect_contains(error_of([&] { vertical_stack(communicator, blocks); }),
                        {"vertical stack", "columns", "5 on rank 0", "7 on rank 1"});
        for (AnyLocalOperator<double>& block : blocks) block = adjoint(block);
        expect_contains(error_of([&] { horizontal_stack(communicator, blocks); }),
                        {"horizontal stack", "rows", "5 on rank 0", "7 on rank 1"});
        const AnyLocalOperator<double> uneven = Dense<double>::numbered(rank == 1 ? 4 : 3, 2, 1);
        expect_contains(error_of([&] { on_replicas(communicator, uneven); }), {"3 on rank 0", "4 on rank 1"});
        expect_contains(error_of([&] { vertical_stack<double>(communicator, {}); }),
                        {"no block on any rank"});
        communicator.barrier();  // the errors left no rank behind
      },
      {2, 3});
}

TEST(StackErrors, OfDistributedOperators) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const AnyOperator<double> seven =
            identity<double>(communicator, Layout::split({7}, communicator.size()));
        const AnyOperator<double> nine =
            identity<double>(communicator, Layout::split({9}, communicator.size()));
        expect_contains(error_of([&] { stacked_vertical<double>({seven, nine}); }), {"7", "9", "vertical"});
        expect_contains(error_of([&] {
                          stacked_horizontal<double>({seven, nine});
                        }),
                        {"7", "9", "horizontal"});
        expect_contains(error_of([&] { stacked_block_diagonal<double>({}); }), {"at least one"});
      },
      {1, 2});
}

TEST(Stacks, NoRankNeedsABlockOfADiagonal) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const AnyOperator<double> empty = block_diagonal<double>(communicator, {});
        EXPECT_EQ(empty.domain().size(), 0);
        expect_adjoint(empty, "empty");
      },
      {1, 2});
}

}  // namespace
}  // namespace shoal::linop::checks
