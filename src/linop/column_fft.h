// SPDX-License-Identifier: Apache-2.0
// Complex transforms of a panel of columns that is one cache line wide, for lengths of factors 2, 3 and 5:
// columns lie in the lanes of vectors, so that every load, store and butterfly is of whole lines. The
// Stockham algorithm (Van Loan, Computational Frameworks for the Fast Fourier Transform, 1.7): each pass
// reads one buffer in the first-level cache and writes the other, in order at the end without a reversal of
// digits. docs/decisions/0010 says why this stands beside FFTW.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "linop/cache_buffer.h"
#include "linop/panel_copy.h"
#include "shoal/array/layout.h"

namespace shoal::linop {

using array::Index;

enum class Direction : std::uint8_t { forward, backward };

/// One pass: butterflies of `radix` rows over all rows, `repeats` of which have the same roots of unity.
template <class R>
struct ColumnPass {
  int radix;
  Index groups, repeats;  // radix * groups * repeats = length
  std::vector<R> roots;   // [groups, radix - 1]: cosine and sine
};

template <class R>
class ColumnFft {
 public:
  using C = std::complex<R>;
  /// Complex numbers of a cache line.
  static constexpr Index width = panel_columns<R>;
  /// Whether this has butterflies for all factors of the length, the panel stays in a cache, and the
  /// processor has vectors of a cache line (AVX-512).
  static bool takes(Index n);

  ColumnFft(Direction direction, Index n);

  /// `width` columns next to each other; strides from row to row. `in` may be `out`.
  void run(const C* in, Index in_stride, C* out, Index out_stride, R scale) const;
  /// The same of any number of columns, one panel after the other.
  void run_columns(const C* in, Index in_stride, C* out, Index out_stride, Index columns, R scale) const;

 private:
  Index n_;
  R sign_;  // of the imaginary part of roots of unity, negated
  std::vector<ColumnPass<R>> passes_;
  CacheBuffer<R> scratch_;  // three panels: two for the passes, one for columns that are less than a line
};

}  // namespace shoal::linop
