// SPDX-License-Identifier: Apache-2.0
#include "linop/stencil_kernels.h"

#include <algorithm>

#include "shoal/array/simd.h"

namespace shoal::linop {
namespace {

namespace simd = array::simd;

// `n` >= lanes. The last vector ends with the range and may repeat what the one before it has done.
template <class R, class Step>
SHOAL_INLINE void for_each_vector(Index n, std::span<const R* const> ahead, const Step& step) {
  constexpr Index lanes = simd::lanes;
  Index i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (const R* later : ahead) __builtin_prefetch(later + i);
    step(i);
  }
  if (i < n) step(n - lanes);
}

// The local copies tell the compiler that stores to `out` do not change them.
template <int Taps, class R>
SHOAL_INLINE void combine_taps(R* out, const R* const* sources, const R* coefficients, Index n,
                               std::span<const R* const> ahead) {
  const R* source[Taps];
  R factor[Taps];
  for (int k = 0; k < Taps; ++k) {
    source[k] = sources[k];
    factor[k] = coefficients[k];
  }
  for_each_vector<R>(
      n, ahead, [&](Index i) __attribute__((always_inline)) {
        simd::Vector<R> sum, element;
        simd::load(sum, source[0] + i);
        sum *= factor[0];
        for (int k = 1; k < Taps; ++k) {
          simd::load(element, source[k] + i);
          sum += element * factor[k];
        }
        simd::store(out + i, sum);
      });
}

template <class R>
SHOAL_INLINE void combine_many_taps(R* out, const R* const* sources, const R* coefficients, std::size_t taps,
                                    Index n, std::span<const R* const> ahead) {
  for_each_vector<R>(
      n, ahead, [&](Index i) __attribute__((always_inline)) {
        simd::Vector<R> sum, element;
        simd::load(sum, sources[0] + i);
        sum *= coefficients[0];
        for (std::size_t k = 1; k < taps; ++k) {
          simd::load(element, sources[k] + i);
          sum += element * coefficients[k];
        }
        simd::store(out + i, sum);
      });
}

template <class R>
SHOAL_INLINE void combine_all(R* out, const R* const* s, const R* c, std::size_t taps, Index n,
                              std::span<const R* const> ahead) {
  switch (taps) {
    case 0: std::fill_n(out, n, R(0)); return;
    case 1: return combine_taps<1>(out, s, c, n, ahead);
    case 2: return combine_taps<2>(out, s, c, n, ahead);
    case 3: return combine_taps<3>(out, s, c, n, ahead);
    case 4: return combine_taps<4>(out, s, c, n, ahead);
    case 5: return combine_taps<5>(out, s, c, n, ahead);
    case 6: return combine_taps<6>(out, s, c, n, ahead);
    case 7: return combine_taps<7>(out, s, c, n, ahead);
    default: return combine_many_taps(out, s, c, taps, n, ahead);
  }
}

}  // namespace

SHOAL_CLONES void combine_long(double* out, const double* const* sources, const double* coefficients,
                               std::size_t taps, Index n, std::span<const double* const> ahead) {
  combine_all(out, sources, coefficients, taps, n, ahead);
}

SHOAL_CLONES void combine_long(float* out, const float* const* sources, const float* coefficients,
                               std::size_t taps, Index n, std::span<const float* const> ahead) {
  combine_all(out, sources, coefficients, taps, n, ahead);
}

}  // namespace shoal::linop
