// SPDX-License-Identifier: Apache-2.0
// Real transforms along columns for lengths that have no small factors: as matrix products, after the even
// and the odd part of each column have halved the work. FFTW takes 9 us for a column of 401 (and 0.5 for one
// of 400); this takes 2.
#pragma once

#include <complex>
#include <vector>

#include "linop/block_transform.h"

namespace shoal::linop {

template <class R>
class RealDft {
 public:
  using C = std::complex<R>;
  /// Whether products are faster than what FFTW has for this length.
  static bool pays(Index n);
  explicit RealDft(Index n);

  /// `columns` of n reals to n / 2 + 1 bins, and back; strides from row to row. Unscaled but for `scale`,
  /// which the spectrum is multiplied by.
  void forward(const R* in, Index in_stride, C* out, Index out_stride, Index columns,
               SpectrumScale<R> scale) const;
  void backward(const C* in, Index in_stride, R* out, Index out_stride, Index columns,
                SpectrumScale<R> scale) const;

 private:
  void transform_parts() const;
  R factor(Index k, SpectrumScale<R> scale) const { return k == 0 || 2 * k == n_ ? scale.edge : scale.inner; }

  Index n_, bins_;
  std::vector<R> cosine_, sine_;                   // [bins, bins], symmetric
  CacheBuffer<R> even_, odd_, cos_sum_, sin_sum_;  // [bins, panel_width]
};

}  // namespace shoal::linop
