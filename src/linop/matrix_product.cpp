// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/matrix_product.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "linop/instantiate.h"
#include "linop/matrix_product_plan.h"
#include "shoal/base/error.h"

namespace shoal::linop {
namespace {

std::vector<Index> copy(std::span<const Index> values) { return {values.begin(), values.end()}; }

void require_matrix(const Layout& a) {
  if (a.is_stack() || a.is_replicated() || a.axes() != 2)
    fail(ErrorCode::invalid_argument,
         fmt::format("a matrix product needs a matrix in blocks over two axes, but was given {}; see "
                     "Layout::blocks",
                     a.describe()));
}

void require_operand(const Layout& a, const Layout& x) {
  if (x.is_stack() || x.is_replicated() || x.axes() != 2 || x.shape()[0] != a.shape()[1] ||
      x.grid() != a.grid())
    fail(ErrorCode::invalid_argument,
         fmt::format("a product with {} needs an operand of {} rows in blocks on the grid {}, not {}",
                     a.describe(), a.shape()[1], fmt::join(a.grid(), "×"), x.describe()));
}

}  // namespace

ProductPlan::ProductPlan(const Layout& a_layout, const Layout& x_layout, Rank rank)
    : a(a_layout),
      x(x_layout),
      y(Layout::blocks_unevenly({a.shape()[0], x.shape()[1]}, {copy(a.extents(0)), copy(x.extents(1))})),
      grid_rows(a.grid()[0]),
      grid_columns(a.grid()[1]),
      row(a.coordinates(rank)[0]),
      column(a.coordinates(rank)[1]),
      n(a.block(rank).extent[0]),
      k(a.block(rank).extent[1]),
      m(x.block(rank).extent[1]) {}

Rank ProductPlan::rank_at(int grid_row, int grid_column) const {
  return grid_row * grid_columns + grid_column;
}

std::vector<Panel> ProductPlan::panels(Index widest) const {
  const std::span<const Index> a_begin = a.offsets(1), x_begin = x.offsets(0);
  std::vector<Panel> panels;
  std::size_t column_at = 0, row_at = 0;
  for (Index begin = 0; begin < a.shape()[1]; begin += panels.back().width) {
    while (a_begin[column_at + 1] <= begin) ++column_at;
    while (x_begin[row_at + 1] <= begin) ++row_at;
    const Index width = std::min({a_begin[column_at + 1] - begin, x_begin[row_at + 1] - begin, widest});
    panels.push_back({.width = width,
                      .a_column = static_cast<int>(column_at),
                      .a_offset = begin - a_begin[column_at],
                      .x_row = static_cast<int>(row_at),
                      .x_offset = begin - x_begin[row_at]});
  }
  return panels;
}

template <class T>
AnyOperator<T> matrix_product(DistributedArray<T> a, const Layout& domain, const MatrixProduct& options) {
  require_matrix(a.layout());
  require_operand(a.layout(), domain);
  if (options.panel < 1)
    fail(ErrorCode::invalid_argument,
         fmt::format("a matrix product by panels of {} columns; use 1 or more", options.panel));
  const ProductPlan plan(a.layout(), domain, a.rank());
  if (a.layout().ranks() == 1)
    return product_by_messages(plan, std::move(a), std::numeric_limits<Index>::max());
  if (options.share)
    if (std::optional<AnyOperator<T>> shared = product_in_shared_memory(plan, a)) return *shared;
  return product_by_messages(plan, std::move(a), options.panel);
}

template <class T>
AnyOperator<T> matrix_product(DistributedArray<T> a, Index columns, const MatrixProduct& options) {
  const Layout layout = a.layout();
  require_matrix(layout);
  return matrix_product(std::move(a), Layout::blocks({layout.shape()[1], columns}, layout.grid()), options);
}

// A word that travels takes about as long as 50 multiplications and additions: 8 bytes at 8 GB/s, 50e9 a
// second.
std::vector<int> product_grid(Index n, Index k, Index m, int ranks) {
  constexpr double word = 50;
  const auto part = [](Index extent, int parts) {
    return static_cast<double>(extent / parts + (extent % parts != 0));
  };
  std::vector<int> best;
  double best_cost = std::numeric_limits<double>::infinity();
  for (int rows = ranks; rows >= 1; --rows) {  // of equals, the one whose A stays
    if (ranks % rows != 0) continue;
    const int columns = ranks / rows;
    const double high = part(n, rows), wide = part(m, columns);
    const double words = high * (columns - 1) / columns + wide * (rows - 1) / rows;
    const double cost = static_cast<double>(k) * (high * wide + word * words);
    if (cost < best_cost) {
      best_cost = cost;
      best = {rows, columns};
    }
  }
  return best;
}

#define SHOAL_INSTANTIATE(T)                                                                        \
  template AnyOperator<T> matrix_product(DistributedArray<T>, const Layout&, const MatrixProduct&); \
  template AnyOperator<T> matrix_product(DistributedArray<T>, Index, const MatrixProduct&);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
