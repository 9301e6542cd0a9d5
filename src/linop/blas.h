// SPDX-License-Identifier: Apache-2.0
// The BLAS calls that operators use, for the four element types; matrices in C order.
#pragma once

#include <complex>
#include <cstdint>

namespace shoal::linop::blas {

enum class Form : std::uint8_t { plain, transposed, adjoint };

/// C [m, n] = alpha op(A) op(B) + beta C, with op(A) [m, k] and op(B) [k, n]; leading dimensions are row
/// lengths of the stored matrices. beta 0 never reads C. One thread, unless OPENBLAS_NUM_THREADS or
/// OMP_NUM_THREADS says otherwise. Throws invalid_argument for lengths of 2^31 and more, which this BLAS
/// cannot take.
template <class T>
void gemm(Form a_form, Form b_form, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a,
          std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc);

/// y = alpha op(A) x + beta y for A [rows, cols].
template <class T>
void gemv(Form form, std::int64_t rows, std::int64_t cols, T alpha, const T* a, std::int64_t lda, const T* x,
          T beta, T* y);

}  // namespace shoal::linop::blas
