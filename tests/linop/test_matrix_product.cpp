// SPDX-License-Identifier: Apache-2.0
// Distributed matrix products against the serial one, on every grid, with panels read in place and sent.
#include <fmt/format.h>

#include <numeric>

#include "linop/operator_checks.h"
#include "shoal/linop/matrix_product.h"

namespace shoal::linop::checks {
namespace {

template <class T>
class MatrixProducts : public testing::Test {};
TYPED_TEST_SUITE(MatrixProducts, ElementTypes);

struct Extents {
  Index n, k, m;
};
// Ones, primes, fewer than the grid has parts, nothing along an axis, and several panels of 4.
const std::vector<Extents> cases{{1, 1, 1}, {7, 5, 3}, {13, 11, 17}, {2, 29, 1}, {3, 2, 5},
                                 {5, 0, 4}, {0, 3, 2}, {4, 6, 0},    {9, 14, 10}};

std::vector<std::vector<int>> grids_of(int ranks) {
  std::vector<std::vector<int>> grids;
  for (int rows = 1; rows <= ranks; ++rows)
    if (ranks % rows == 0) grids.push_back({rows, ranks / rows});
  return grids;
}

// x -> A x, for x [A's columns, m].
template <class T>
std::function<std::vector<T>(const std::vector<T>&)> times(const Dense<T>& a, Index m) {
  return [&a, m](const std::vector<T>& x) {
    Dense<T> operand(a.width, m);
    operand.elements = x;
    return (a * operand).elements;
  };
}

template <class T>
void expect_product(const AnyOperator<T>& product, const Dense<T>& a, Index m, const std::string& what) {
  const Dense<T> back = a.conjugate_transpose();
  expect_operator<T, T>(product, times(a, m), times(back, m), what);
}

TYPED_TEST(MatrixProducts, OnEveryGrid) {
  using T = TypeParam;
  on_ranks([](comm::Communicator& communicator) {
    for (const std::vector<int>& grid : grids_of(communicator.size()))
      for (const auto& [n, k, m] : cases)
        for (const bool share : {true, false}) {
          const Dense<T> full = Dense<T>::numbered(n, k, 1);
          const auto a =
              DistributedArray<T>::from_full(communicator, Layout::blocks({n, k}, grid), full.elements);
          const auto product = matrix_product(a, m, {.share = share, .panel = 4});
          EXPECT_EQ(product.domain(), Layout::blocks({k, m}, grid));
          EXPECT_EQ(product.range(), Layout::blocks({n, m}, grid));
          expect_product(
              product, full, m,
              fmt::format("{}×{} times {} columns on {}×{}, share {}", n, k, m, grid[0], grid[1], share));
        }
  });
}

// All but two on the last but one part, two on the first: the others are empty.
std::vector<Index> uneven(Index n, int parts) {
  std::vector<Index> extents(static_cast<std::size_t>(parts), 0);
  extents[static_cast<std::size_t>(std::max(0, parts - 2))] = n - 2;
  extents[0] += 2;
  return extents;
}

TYPED_TEST(MatrixProducts, OfUnevenAndEmptyBlocks) {
  using T = TypeParam;
  on_ranks([](comm::Communicator& communicator) {
    for (const std::vector<int>& grid : grids_of(communicator.size()))
      for (const bool share : {true, false}) {
        const Dense<T> full = Dense<T>::numbered(9, 14, 1);
        const Layout layout = Layout::blocks_unevenly({9, 14}, {uneven(9, grid[0]), uneven(14, grid[1])});
        const Layout domain =
            Layout::blocks_unevenly({14, 6}, {array::balanced_extents(14, grid[0]), uneven(6, grid[1])});
        const auto product =
            matrix_product(DistributedArray<T>::from_full(communicator, layout, full.elements), domain,
                           {.share = share, .panel = 3});
        EXPECT_EQ(product.domain(), domain);
        expect_product(product, full, 6, layout.describe());
      }
  });
}

TYPED_TEST(MatrixProducts, OfRowsWithReplicas) {
  using T = TypeParam;
  on_ranks([](comm::Communicator& communicator) {
    for (const auto& [n, k, m] : cases) {
      const Dense<T> full = Dense<T>::numbered(n, k, 1);
      const Layout layout = Layout::split({n, k}, communicator.size());
      const auto product =
          block_product(DistributedArray<T>::from_full(communicator, layout, full.elements), m);
      EXPECT_EQ(product.domain(), Layout::replicated({k, m}, communicator.size()));
      EXPECT_EQ(product.range(), Layout::split({n, m}, communicator.size()));
      expect_product(product, full, m, fmt::format("rows of {}×{} times {} columns", n, k, m));
      check_replicas(product.adjoint_of(random_array<T>(communicator, product.range(), 1)));
    }
  });
}

// Products of products: the range of one is the domain of the other where both are in balance.
TEST(MatrixProducts, Compose) {
  on_ranks([](comm::Communicator& communicator) {
    for (const std::vector<int>& grid : grids_of(communicator.size())) {
      const auto a_full = Dense<double>::numbered(5, 7, 1), b_full = Dense<double>::numbered(7, 4, 2);
      const auto of = [&](const Dense<double>& full) {
        const Layout layout = Layout::blocks({full.height, full.width}, grid);
        return matrix_product(DistributedArray<double>::from_full(communicator, layout, full.elements), 3);
      };
      expect_product(of(a_full) * of(b_full), a_full * b_full, 3, "a product of products");
    }
  });
}

TEST(ProductGrid, CutsWhatIsLong) {
  EXPECT_EQ(product_grid(1000, 1000, 1, 6), (std::vector<int>{6, 1}));
  EXPECT_EQ(product_grid(1, 1000, 1000, 6), (std::vector<int>{1, 6}));
  EXPECT_EQ(product_grid(2000, 2000, 2000, 16), (std::vector<int>{4, 4}));
  EXPECT_EQ(product_grid(0, 0, 0, 1), (std::vector<int>{1, 1}));
  for (const int ranks : {1, 2, 3, 4, 6, 7, 12}) {
    const std::vector<int> grid = product_grid(50, 60, 70, ranks);
    EXPECT_EQ(grid[0] * grid[1], ranks);
  }
}

TEST(MatrixProductErrors, SayWhatIsNeeded) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const int ranks = communicator.size();
        const auto matrix = [&](const Layout& layout) {
          return DistributedArray<double>(communicator, layout);
        };
        const Layout good = Layout::split({6, 5}, ranks);
        expect_contains(error_of([&] {
                          matrix_product(matrix(Layout::replicated({6, 5}, ranks)), 2);
                        }),
                        {"replicated", "Layout::blocks"});
        expect_contains(error_of([&] {
                          matrix_product(matrix(Layout::split({6, 5, 4}, ranks)), 2);
                        }),
                        {"6×5×4"});
        expect_contains(error_of([&] {
                          matrix_product(matrix(good), Layout::split({6, 2}, ranks));
                        }),
                        {"5 rows", "6×2"});
        expect_contains(error_of([&] { matrix_product(matrix(good), 2, {.panel = 0}); }),
                        {"0 columns", "1 or more"});
        expect_contains(error_of([&] { matrix_product(matrix(good), -1); }), {"-1"});
        expect_contains(error_of([&] {
                          block_product(matrix(Layout::split({6, 5}, ranks, 1)), 2);
                        }),
                        {"axis 0", "6×5"});
      },
      {1, 2});
}

}  // namespace
}  // namespace shoal::linop::checks
