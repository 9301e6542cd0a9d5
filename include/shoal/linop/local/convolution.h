// SPDX-License-Identifier: Apache-2.0
// Convolutions along one axis of an array in C order, zeros beyond its ends.
#pragma once

#include <span>
#include <vector>

#include "shoal/linop/local/lines.h"

namespace shoal::linop::local {

/// y[i] = sum over k of h[k] x[i - k + offset], the same length as x. (pylops: Convolve1D.) offset lies in
/// [0, size of h); half the size centres a symmetric filter.
template <class T>
class Convolve1D {
 public:
  using value_type = T;
  Convolve1D(Shape dims, std::vector<T> filter, Index offset, int axis = -1);
  Index rows() const { return lines_.size(); }
  Index cols() const { return lines_.size(); }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Lines lines_;
  std::vector<T> filter_, adjoint_filter_;
  Index offset_;
};

/// A filter for each sample of an axis: given at regular positions, linear between them, constant outside.
/// Row i of the bank, `length` (odd) long and centred, is what sample i of the input contributes.
template <class T>
class FilterBank {
 public:
  /// `filters` is [count, length] in C order, at positions first, first + step, ...
  FilterBank(std::vector<T> filters, Index length, Index first, Index step);
  Index length() const { return length_; }
  Index reach() const { return length_ / 2; }
  /// The filter of the sample at `position`: length() elements.
  void filter_at(Index position, std::span<T> filter) const;
  /// For outputs at positions begin .. begin + count - 1, what each takes from inputs position - reach to
  /// position + reach: [count, length], of the convolution and of its adjoint. Inputs outside [0, n) count 0.
  std::vector<T> gather_table(Index begin, Index count, Index n) const;
  std::vector<T> adjoint_gather_table(Index begin, Index count, Index n) const;

 private:
  std::vector<T> filters_;
  Index length_, first_, step_;
};

/// Applies a gather table: y[o, i, c] = sum over k of table[i, k] x[o, i + k, c], where x has `length - 1`
/// more samples along the axis than y.
template <class T>
void gather_lines(std::span<const T> table, Index length, const Lines& output, const T* x, T* y);

/// y[j] = sum over i of h_i[j - i + length/2] x[i]. (pylops: NonStationaryConvolve1D.)
template <class T>
class NonStationaryConvolve1D {
 public:
  using value_type = T;
  NonStationaryConvolve1D(Shape dims, FilterBank<T> bank, int axis = -1);
  Index rows() const { return lines_.size(); }
  Index cols() const { return lines_.size(); }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Lines lines_;
  Index length_;
  std::vector<T> forward_, adjoint_;
};

}  // namespace shoal::linop::local
