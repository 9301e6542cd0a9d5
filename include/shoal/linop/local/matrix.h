// SPDX-License-Identifier: Apache-2.0
// Matrices as local operators. Dense products are BLAS calls, sparse ones Eigen's.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "shoal/array/layout.h"

namespace shoal::linop::local {

using array::Index;

/// y = A x for A [rows, cols] in C order. With `columns` > 1, x is [cols, columns] and y [rows, columns].
template <class T>
class DenseMatrix {
 public:
  using value_type = T;
  DenseMatrix(Index rows, Index cols, std::vector<T> elements, Index columns = 1);
  Index rows() const { return rows_ * columns_; }
  Index cols() const { return cols_ * columns_; }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Index rows_, cols_, columns_;
  std::shared_ptr<const std::vector<T>> elements_;
};

/// One entry of a sparse matrix; entries of the same place add up.
template <class T>
struct Entry {
  Index row, col;
  T value;
};

template <class T>
class SparseMatrix {
 public:
  using value_type = T;
  SparseMatrix(Index rows, Index cols, std::span<const Entry<T>> entries);
  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  struct Matrix;
  Index rows_, cols_;
  std::shared_ptr<const Matrix> matrix_;
};

}  // namespace shoal::linop::local
