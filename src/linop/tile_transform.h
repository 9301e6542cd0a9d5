// SPDX-License-Identifier: Apache-2.0
// Transforms along the columns of a tile of few columns: by ColumnFft, or FFTW where that has no butterflies
// for the length. FFTW takes them by cache lines: with four complex
// doubles at a time a length of 200 takes 13 ms for 200^2 columns in the second-level cache, with 16 of them
// 35 ms, one by one 15 ms.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "linop/column_fft.h"
#include "linop/fftw_plan.h"
#include "shoal/array/layout.h"

namespace shoal::linop {

using array::Index;

template <class R>
FftPlan<R> make_plan(Direction direction, bool halved, std::vector<FftAxis> axes,
                     std::vector<FftAxis> batch) {
  if (halved)
    return direction == Direction::forward ? FftPlan<R>::real_forward(std::move(axes), std::move(batch))
                                           : FftPlan<R>::real_backward(std::move(axes), std::move(batch));
  return direction == Direction::forward ? FftPlan<R>::complex_forward(std::move(axes), std::move(batch))
                                         : FftPlan<R>::complex_backward(std::move(axes), std::move(batch));
}

template <class R>
class TileTransform {
 public:
  /// Complex numbers of a cache line.
  static constexpr Index line = panel_columns<R>;
  /// Of a tile: an odd number of lines, so that rows do not fall into few sets of the cache.
  static constexpr Index best_width = 5 * line;

  /// `width` columns of n elements; strides from row to row.
  TileTransform(Direction direction, bool halved, Index n, Index in_stride, Index out_stride, Index width)
      : width_(width), in_stride_(in_stride), out_stride_(out_stride) {
    if (!halved && ColumnFft<R>::takes(n)) {
      own_.emplace(direction, n);
      return;
    }
    for (const Index columns : {line, width % line})
      plans_.push_back(make_plan<R>(direction, halved, {{n, in_stride, out_stride}}, {{columns, 1, 1}}));
  }

  template <class In, class Out>
  void run(In* in, Out* out) const {
    if constexpr (std::is_same_v<std::remove_const_t<In>, Out>)
      if (own_) return own_->run_columns(in, in_stride_, out, out_stride_, width_, R{1});
    Index c = 0;
    for (; c + line <= width_; c += line) plans_[0].run(in + c, out + c);
    plans_[1].run(in + c, out + c);
  }

 private:
  Index width_, in_stride_, out_stride_;
  std::optional<ColumnFft<R>> own_;
  std::vector<FftPlan<R>> plans_;  // else: of a line, and of the rest
};

}  // namespace shoal::linop
