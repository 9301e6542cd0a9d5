// SPDX-License-Identifier: Apache-2.0
#include "linop/local/gather_kernels.h"

#include <algorithm>

#include "shoal/array/simd.h"

namespace shoal::linop::local {
namespace {

namespace simd = array::simd;

// Vectors of sums at a time: enough to hide the latency of an addition.
constexpr Index sums = 8;
constexpr Index lanes = static_cast<Index>(simd::lanes);

template <class R, Index vectors>
SHOAL_INLINE void gather_tile(const R* weights, Index taps, Index inner, const R* x, R* y) {
  simd::Vector<R> sum[vectors] = {};
  for (Index k = 0; k < taps; ++k, x += inner)
    for (Index v = 0; v < vectors; ++v) {
      simd::Vector<R> in;
      simd::load(in, x + v * lanes);
      sum[v] += weights[k] * in;
    }
  for (Index v = 0; v < vectors; ++v) simd::store(y + v * lanes, sum[v]);
}

template <class R>
SHOAL_INLINE void gather_one(const R* weights, Index taps, Index inner, const R* x, R* y) {
  R sum = 0;
  for (Index k = 0; k < taps; ++k) sum += weights[k] * x[k * inner];
  *y = sum;
}

// Eight partial sums of a line's own.
template <class R>
SHOAL_INLINE void gather_line(const R* table, Index taps, Index length, const R* x, R* y) {
  for (Index i = 0; i < length; ++i, table += taps) {
    simd::Vector<R> sum = {};
    Index k = 0;
    for (; k + lanes <= taps; k += lanes) {
      simd::Vector<R> weights, in;
      simd::load(weights, table + k);
      simd::load(in, x + i + k);
      sum += weights * in;
    }
    R total = ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
    for (; k < taps; ++k) total += table[k] * x[i + k];
    y[i] = total;
  }
}

// Tiles of columns outside, so that the rows that neighbouring outputs share stay in the first-level cache.
template <class R>
SHOAL_INLINE void gather(const R* table, Index taps, Index length, Index inner, const R* x, R* y) {
  if (inner == 1) return gather_line(table, taps, length, x, y);
  Index c = 0;
  for (; c + sums * lanes <= inner; c += sums * lanes)
    for (Index i = 0; i < length; ++i)
      gather_tile<R, sums>(table + i * taps, taps, inner, x + i * inner + c, y + i * inner + c);
  for (; c + lanes <= inner; c += lanes)
    for (Index i = 0; i < length; ++i)
      gather_tile<R, 1>(table + i * taps, taps, inner, x + i * inner + c, y + i * inner + c);
  for (; c < inner; ++c)
    for (Index i = 0; i < length; ++i)
      gather_one(table + i * taps, taps, inner, x + i * inner + c, y + i * inner + c);
}

}  // namespace

SHOAL_CLONES void gather_columns(const double* table, Index taps, Index length, Index inner, const double* x,
                                 double* y) {
  gather(table, taps, length, inner, x, y);
}
SHOAL_CLONES void gather_columns(const float* table, Index taps, Index length, Index inner, const float* x,
                                 float* y) {
  gather(table, taps, length, inner, x, y);
}

}  // namespace shoal::linop::local
