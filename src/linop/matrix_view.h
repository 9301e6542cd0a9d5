// SPDX-License-Identifier: Apache-2.0
// A block of a matrix where it lies, and its products with matrices whose rows are contiguous.
#pragma once

#include <algorithm>

#include "linop/blas.h"
#include "shoal/array/layout.h"

namespace shoal::linop {

using array::Index;

/// [rows, cols] in C order; neighbouring rows begin `row_length` elements apart.
template <class T>
struct MatrixView {
  const T* data = nullptr;
  Index rows = 0, cols = 0;
  Index row_length = 0;
};

namespace detail {

// C [m, columns] = op(A) B, or C += op(A) B. This BLAS refuses a row length of 0, which empty matrices have.
template <class T>
void multiply(blas::Form form, const MatrixView<T>& a, const T* b, Index columns, T* c, bool add) {
  const bool plain = form == blas::Form::plain;
  const Index m = plain ? a.rows : a.cols, k = plain ? a.cols : a.rows;
  if (m == 0 || columns == 0) return;
  if (k == 0) {
    if (!add) std::fill_n(c, m * columns, T(0));
    return;
  }
  const T beta = add ? T(1) : T(0);
  if (columns == 1)
    blas::gemv<T>(form, a.rows, a.cols, T(1), a.data, a.row_length, b, beta, c);
  else
    blas::gemm<T>(form, blas::Form::plain, m, columns, k, T(1), a.data, a.row_length, b, columns, beta, c,
                  columns);
}

}  // namespace detail

/// y [a.rows, columns] = A x, or y += A x, with x [a.cols, columns].
template <class T>
void multiply(const MatrixView<T>& a, const T* x, Index columns, T* y, bool add = false) {
  detail::multiply(blas::Form::plain, a, x, columns, y, add);
}

/// x [a.cols, columns] = A^H y, or x += A^H y, with y [a.rows, columns].
template <class T>
void multiply_adjoint(const MatrixView<T>& a, const T* y, Index columns, T* x, bool add = false) {
  detail::multiply(blas::Form::adjoint, a, y, columns, x, add);
}

}  // namespace shoal::linop
