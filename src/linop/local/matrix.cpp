// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/local/matrix.h"

#include <Eigen/SparseCore>
#include <complex>

#include <fmt/format.h>

#include "linop/blas.h"
#include "linop/instantiate.h"
#include "shoal/base/error.h"

namespace shoal::linop::local {

template <class T>
DenseMatrix<T>::DenseMatrix(Index rows, Index cols, std::vector<T> elements, Index columns)
    : rows_(rows), cols_(cols), columns_(columns) {
  if (rows < 0 || cols < 0 || columns < 1)
    fail(ErrorCode::invalid_argument,
         fmt::format("dense matrix of {} x {} applied to {} columns", rows, cols, columns));
  const Index extents[] = {rows, cols};
  if (static_cast<Index>(elements.size()) != array::size_of_shape(extents))
    fail(ErrorCode::invalid_argument,
         fmt::format("dense matrix of {} x {} was given {} elements", rows, cols, elements.size()));
  elements_ = std::make_shared<const std::vector<T>>(std::move(elements));
}

template <class T>
void DenseMatrix<T>::apply(std::span<const T> x, std::span<T> y) const {
  if (columns_ == 1)
    blas::gemv<T>(blas::Form::plain, rows_, cols_, T{1}, elements_->data(), cols_, x.data(), T{}, y.data());
  else
    blas::gemm<T>(blas::Form::plain, blas::Form::plain, rows_, columns_, cols_, T{1}, elements_->data(),
                  cols_, x.data(), columns_, T{}, y.data(), columns_);
}

template <class T>
void DenseMatrix<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  if (columns_ == 1)
    blas::gemv<T>(blas::Form::adjoint, rows_, cols_, T{1}, elements_->data(), cols_, y.data(), T{}, x.data());
  else
    blas::gemm<T>(blas::Form::adjoint, blas::Form::plain, cols_, columns_, rows_, T{1}, elements_->data(),
                  cols_, y.data(), columns_, T{}, x.data(), columns_);
}

template <class T>
struct SparseMatrix<T>::Matrix {
  Eigen::SparseMatrix<T, Eigen::RowMajor, Index> rows;
  Eigen::SparseMatrix<T, Eigen::RowMajor, Index> adjoint_rows;  // so that both directions run along rows
};

template <class T>
SparseMatrix<T>::SparseMatrix(Index rows, Index cols, std::span<const Entry<T>> entries)
    : rows_(rows), cols_(cols) {
  if (rows < 0 || cols < 0)
    fail(ErrorCode::invalid_argument, fmt::format("sparse matrix of {} x {}", rows, cols));
  std::vector<Eigen::Triplet<T, Index>> triplets;
  triplets.reserve(entries.size());
  for (const Entry<T>& e : entries) {
    if (e.row < 0 || e.row >= rows || e.col < 0 || e.col >= cols)
      fail(ErrorCode::invalid_argument,
           fmt::format("sparse matrix of {} x {}: an entry at ({}, {})", rows, cols, e.row, e.col));
    triplets.emplace_back(e.row, e.col, e.value);
  }
  auto matrix = std::make_shared<Matrix>();
  matrix->rows.resize(rows, cols);
  matrix->rows.setFromTriplets(triplets.begin(), triplets.end());
  matrix->adjoint_rows = matrix->rows.adjoint();
  matrix_ = std::move(matrix);
}

namespace {

template <class T, class Matrix>
void multiply(const Matrix& matrix, std::span<const T> x, std::span<T> y) {
  using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
  Eigen::Map<Vector>(y.data(), static_cast<Eigen::Index>(y.size())).noalias() =
      matrix * Eigen::Map<const Vector>(x.data(), static_cast<Eigen::Index>(x.size()));
}

}  // namespace

template <class T>
void SparseMatrix<T>::apply(std::span<const T> x, std::span<T> y) const {
  multiply<T>(matrix_->rows, x, y);
}

template <class T>
void SparseMatrix<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  multiply<T>(matrix_->adjoint_rows, y, x);
}

#define SHOAL_INSTANTIATE(T)     \
  template class DenseMatrix<T>; \
  template class SparseMatrix<T>;
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop::local
