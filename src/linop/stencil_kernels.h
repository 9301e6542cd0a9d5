// SPDX-License-Identifier: Apache-2.0
// The inner loop of stencils, and writing large outputs past the caches. Complex elements are pairs of reals.
#pragma once

#include <vector>

#include "shoal/array/layout.h"

namespace shoal::linop {

using array::Index;

/// combine() of at least 8 elements.
void combine_long(double* out, const double* const* sources, const double* coefficients, std::size_t taps,
                  Index n);
void combine_long(float* out, const float* const* sources, const float* coefficients, std::size_t taps,
                  Index n);

/// out[i] = sum over k of coefficients[k] sources[k][i], in the order of k, for `n` elements; `out` overlaps
/// no source. The same bits on every processor and wherever a range is cut.
template <class R>
void combine(R* out, const R* const* sources, const R* coefficients, std::size_t taps, Index n) {
  if (n >= 8) return combine_long(out, sources, coefficients, taps, n);
  for (Index i = 0; i < n; ++i) {
    R sum(0);
    if (taps > 0) sum = sources[0][i] * coefficients[0];
    for (std::size_t k = 1; k < taps; ++k) sum += sources[k][i] * coefficients[k];
    out[i] = sum;
  }
}

/// Collects what is written to ascending addresses and stores it by whole cache lines, past the caches: a
/// large output is not read from memory before it is written. What is collected is stored by flush().
template <class R>
class StreamWriter {
 public:
  static constexpr Index line = 64 / static_cast<Index>(sizeof(R));
  /// The most that may be reserved at once.
  static constexpr Index most = 4096 / static_cast<Index>(sizeof(R));

  StreamWriter();
  StreamWriter(StreamWriter&&) = default;
  StreamWriter& operator=(StreamWriter&&) = default;
  /// Where to write the `n` elements that belong at `to`.
  R* reserve(R* to, Index n) {
    if (to != base_ + end_ || end_ + n > capacity) make_room(to, n);
    R* place = buffer_ + end_;
    end_ += n;
    return place;
  }
  void flush();

 private:
  static constexpr Index capacity = most + 2 * line;
  void make_room(R* to, Index n);
  void store(Index end);

  std::vector<R> memory_;
  R* buffer_;          // aligned to lines; buffer_[k] belongs at base_[k]
  R* base_ = nullptr;  // aligned to lines
  Index begin_ = 0, end_ = 0;
};

}  // namespace shoal::linop
