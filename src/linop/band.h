// SPDX-License-Identifier: Apache-2.0
// A finite-difference operator along one axis as a matrix: few non-zeros a row, near the diagonal, equal in
// all rows but some at the ends.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "shoal/linop/derivatives.h"

namespace shoal::linop {

/// The non-zero of a row at column row + offset.
struct Tap {
  Index offset;
  double coefficient;
};

class Band {
 public:
  /// n x n. `row(i)` says the taps of row i, ascending in offset and inside the matrix; at least `margin`
  /// rows from both ends all rows are equal.
  Band(Index n, Index margin, const std::function<std::vector<Tap>(Index)>& row);

  Index size() const { return size_; }
  std::span<const Tap> row(Index i) const;
  /// The rows [inner_begin, inner_end) are equal.
  Index inner_begin() const { return inner_begin_; }
  Index inner_end() const { return inner_end_; }
  /// How many columns before and after its own a row reaches at most.
  Index reach_before() const { return reach_before_; }
  Index reach_after() const { return reach_after_; }

  Band transposed() const;

 private:
  Index size_, inner_begin_, inner_end_;
  Index reach_before_ = 0, reach_after_ = 0;
  std::vector<Tap> inner_;
  std::vector<std::vector<Tap>> outer_;  // rows [0, inner_begin) and [inner_end, size)
};

/// The matrices of the formulas in derivatives.h, times `weight`. They check the options.
Band first_derivative_band(Index n, const FirstDerivative& options);
Band second_derivative_band(Index n, const SecondDerivative& options, double weight = 1);

/// The axis from 0; throws where the layout is a stack or has no such axis.
int checked_axis(const Layout& layout, int axis);

}  // namespace shoal::linop
