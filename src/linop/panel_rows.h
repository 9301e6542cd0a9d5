// SPDX-License-Identifier: Apache-2.0
// Transforms along the last axis: as many rows as a cache line holds complex numbers become the columns of a
// panel, and rows again. A row of n reals is one of n / 2 complex numbers, whose spectrum is taken apart
// (Press et al., Numerical Recipes, 12.3).
#pragma once

#include "linop/block_transform.h"
#include "linop/column_fft.h"

namespace shoal::linop {

template <class R>
class PanelRows {
 public:
  using C = std::complex<R>;
  /// Of n complex numbers or, `halved`, of n reals to n / 2 + 1 bins and back.
  static bool takes(Index n, bool halved);
  PanelRows(Index count, Index n, bool halved);

  /// `from` may be `to`.
  void run(Direction direction, const C* from, C* to, R scale) const;
  void halve(const R* from, C* to, SpectrumScale<R> scale) const;
  void unhalve(const C* from, R* to, SpectrumScale<R> scale) const;

 private:
  Index count_, length_;  // of the complex transform
  ColumnFft<R> forward_, backward_;
  std::vector<R> roots_;  // [length / 2 + 1]: cosine and sine of a turn over 2 length
  CacheBuffer<C> panel_;  // [length + 1, width]
};

}  // namespace shoal::linop
