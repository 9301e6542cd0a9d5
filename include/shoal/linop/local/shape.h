// SPDX-License-Identifier: Apache-2.0
// Transposing, padding and summing arrays that lie on one rank.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "shoal/linop/local/lines.h"

namespace shoal::linop::local {

/// Axis i of the output is axis axes[i] of the input.
template <class T>
class Transpose {
 public:
  using value_type = T;
  Transpose(Shape dims, std::vector<int> axes);
  Index rows() const { return size_; }
  Index cols() const { return size_; }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Shape dims_, transposed_dims_;
  std::vector<int> axes_, inverse_axes_;
  Index size_;
};

/// Zeros before and behind, `pads` for each axis.
template <class T>
class Pad {
 public:
  using value_type = T;
  Pad(Shape dims, std::vector<std::pair<Index, Index>> pads);
  Index rows() const { return array::size_of_shape(padded_dims_); }
  Index cols() const { return array::size_of_shape(dims_); }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Shape dims_, padded_dims_, begin_;
};

/// The sum along `axis`, which the output lacks.
template <class T>
class Sum {
 public:
  using value_type = T;
  explicit Sum(Shape dims, int axis = -1);
  Index rows() const { return lines_.outer * lines_.inner; }
  Index cols() const { return lines_.size(); }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Lines lines_;
};

}  // namespace shoal::linop::local
