// SPDX-License-Identifier: Apache-2.0
// Products with a dense distributed matrix: Y [N, M] = A [N, K] X [K, M], and X = A^H Y. The local products
// are BLAS calls.
//
// matrix_product(): A, X and Y lie in blocks on one grid of any shape, so that no rank holds more than its
// share of any of them. Panels of A travel along the rows of the grid and panels of X along its columns
// (SUMMA: van de Geijn and Watts, Concurrency: Practice and Experience 9, 1997), each while the one before
// it is multiplied. The adjoint moves A in the same way and sums its products along the columns. Ranks of one
// host keep A in memory that they share, and multiply what the others hold where it lies: then A does not
// travel at all.
//
// block_product(): A in rows, X whole on every rank. The forward needs no communication.
//
// DistributedArray::from_full() takes a rank's block out of a full matrix, to_full() gathers one.
#pragma once

#include <vector>

#include "shoal/linop/linear_operator.h"

namespace shoal::linop {

struct MatrixProduct {
  /// Share A among ranks of one host: where all ranks are on one and the memory can be had. Takes as much
  /// symmetric memory on each rank as the largest block of A, and of X or Y. Else panels are sent.
  bool share = true;
  /// Columns of A in a panel that is sent, at most. BLAS reaches its rate from about 256 on.
  Index panel = 512;
};

/// Collective. `a` is in blocks over two axes (slabs are blocks too), each rank with any part of it, also
/// none. The rows of X are cut in balance, those of Y as A's; `columns` (M) in balance, both by a's grid.
template <class T>
AnyOperator<T> matrix_product(DistributedArray<T> a, Index columns, const MatrixProduct& options = {});
/// For X in a layout of its own: blocks [K, M] on a's grid. The columns of Y are cut as those of X.
template <class T>
AnyOperator<T> matrix_product(DistributedArray<T> a, const Layout& domain, const MatrixProduct& options = {});

/// `a` is split along its first axis. X [K, columns] is replicated, Y [N, columns] split as A. The adjoint
/// ends with one all_reduce of X.
template <class T>
AnyOperator<T> block_product(DistributedArray<T> a, Index columns);

/// A grid of `ranks` for an N x K matrix times K x M: the one with the shortest way through the largest
/// blocks of Y and the panels that travel.
std::vector<int> product_grid(Index n, Index k, Index m, int ranks);

}  // namespace shoal::linop
