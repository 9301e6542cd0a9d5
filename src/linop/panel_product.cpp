// SPDX-License-Identifier: Apache-2.0
#include "linop/panel_product.h"

#include "shoal/array/simd.h"

namespace shoal::linop {
namespace {

namespace simd = array::simd;
using array::Index;

constexpr Index lanes = static_cast<Index>(simd::lanes);
constexpr Index vectors = panel_width / lanes;

template <class R, Index rows>
SHOAL_INLINE void multiply_rows(const R* matrix, Index n, const R* x, R* y) {
  simd::Vector<R> sum[rows][vectors] = {};
  for (Index j = 0; j < n; ++j)
    for (Index v = 0; v < vectors; ++v) {
      simd::Vector<R> in;
      simd::load(in, x + j * panel_width + v * lanes);
      for (Index r = 0; r < rows; ++r) sum[r][v] += matrix[r * n + j] * in;
    }
  for (Index r = 0; r < rows; ++r)
    for (Index v = 0; v < vectors; ++v) simd::store(y + r * panel_width + v * lanes, sum[r][v]);
}

template <class R>
SHOAL_INLINE void multiply(const R* matrix, Index n, const R* x, R* y) {
  constexpr Index rows = 4;
  Index k = 0;
  for (; k + rows <= n; k += rows) multiply_rows<R, rows>(matrix + k * n, n, x, y + k * panel_width);
  for (; k < n; ++k) multiply_rows<R, 1>(matrix + k * n, n, x, y + k * panel_width);
}

}  // namespace

SHOAL_CLONES void multiply_panel(const double* matrix, Index n, const double* x, double* y) {
  multiply(matrix, n, x, y);
}
SHOAL_CLONES void multiply_panel(const float* matrix, Index n, const float* x, float* y) {
  multiply(matrix, n, x, y);
}

}  // namespace shoal::linop
