// SPDX-License-Identifier: Apache-2.0
// Who holds what of a distributed product Y [N, M] = A [N, K] X [K, M], seen from one rank, and the two ways
// to compute it. A, X and Y are in blocks on one grid.
#pragma once

#include <optional>
#include <vector>

#include "shoal/linop/matrix_product.h"

namespace shoal::linop {

/// A range of the axis K, within one block of A's columns and one block of X's rows.
struct Panel {
  Index width = 0;
  int a_column = 0;    // of the grid, whose ranks hold these columns of A
  Index a_offset = 0;  // of the first of them in their blocks
  int x_row = 0;       // of the grid, whose ranks hold these rows of X
  Index x_offset = 0;  // of the first of them in their blocks
};

struct ProductPlan {
  Layout a, x, y;
  int grid_rows = 1, grid_columns = 1;
  int row = 0, column = 0;    // this rank's place
  Index n = 0, k = 0, m = 0;  // extents of its blocks: A [n, k], Y [n, m]

  ProductPlan(const Layout& a_layout, const Layout& x_layout, Rank rank);
  Rank rank_at(int grid_row, int grid_column) const;
  /// In order, without empty ones, at most `widest` wide.
  std::vector<Panel> panels(Index widest) const;
};

/// The product by panels that are sent.
template <class T>
AnyOperator<T> product_by_messages(const ProductPlan& plan, DistributedArray<T> a, Index widest_panel);

/// The product where every rank reads the others' blocks. Collective; none, on all ranks, where they are not
/// on one host or the memory cannot be had.
template <class T>
std::optional<AnyOperator<T>> product_in_shared_memory(const ProductPlan& plan, const DistributedArray<T>& a);

}  // namespace shoal::linop
