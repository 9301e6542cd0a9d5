// SPDX-License-Identifier: Apache-2.0
// The inner loop of stencils. Complex elements are pairs of reals.
#pragma once

#include <span>

#include "shoal/array/layout.h"

namespace shoal::linop {

using array::Index;

/// combine() of at least 8 elements.
void combine_long(double* out, const double* const* sources, const double* coefficients, std::size_t taps,
                  Index n, std::span<const double* const> ahead);
void combine_long(float* out, const float* const* sources, const float* coefficients, std::size_t taps,
                  Index n, std::span<const float* const> ahead);

/// out[i] = sum over k of coefficients[k] sources[k][i], in the order of k, for `n` elements; `out` overlaps
/// no source. The same bits on every processor and wherever a range is cut. Meanwhile memory that will be
/// needed later is fetched into the caches: `n` elements from each of `ahead`.
template <class R>
void combine(R* out, const R* const* sources, const R* coefficients, std::size_t taps, Index n,
             std::span<const R* const> ahead = {}) {
  if (n >= 8) return combine_long(out, sources, coefficients, taps, n, ahead);
  for (Index i = 0; i < n; ++i) {
    R sum(0);
    if (taps > 0) sum = sources[0][i] * coefficients[0];
    for (std::size_t k = 1; k < taps; ++k) sum += sources[k][i] * coefficients[k];
    out[i] = sum;
  }
}

}  // namespace shoal::linop
