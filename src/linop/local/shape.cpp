// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/local/shape.h"

#include <algorithm>
#include <complex>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "shoal/base/error.h"

namespace shoal::linop::local {
namespace {

Index at(const Shape& shape, int i) { return shape[static_cast<std::size_t>(i)]; }

Shape strides_of(const Shape& dims) {
  Shape strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

// Writes an array of `dims` (C order) to `out`, its element along axis i being in[i * strides[i]].
template <class T>
T* gather_strided(const T* in, const Shape& dims, const Shape& strides, std::size_t axis, T* out) {
  if (axis == dims.size()) {
    *out = *in;
    return out + 1;
  }
  if (axis + 1 == dims.size()) {
    for (Index i = 0; i < dims[axis]; ++i) *out++ = in[i * strides[axis]];
    return out;
  }
  for (Index i = 0; i < dims[axis]; ++i)
    out = gather_strided(in + i * strides[axis], dims, strides, axis + 1, out);
  return out;
}

template <class T>
void transpose(const T* x, const Shape& dims, const std::vector<int>& axes, T* y) {
  const Shape strides = strides_of(dims);
  Shape out_dims, out_strides;
  for (const int a : axes) {
    out_dims.push_back(at(dims, a));
    out_strides.push_back(at(strides, a));
  }
  gather_strided(x, out_dims, out_strides, 0, y);
}

}  // namespace

template <class T>
Transpose<T>::Transpose(Shape dims, std::vector<int> axes)
    : dims_(std::move(dims)),
      axes_(std::move(axes)),
      inverse_axes_(axes_.size(), -1),
      size_(array::size_of_shape(dims_)) {
  const int count = static_cast<int>(dims_.size());
  const auto refuse = [count] {
    fail(ErrorCode::invalid_argument,
         fmt::format("transpose: the axes are no permutation of the {} there are", count));
  };
  if (axes_.size() != dims_.size()) refuse();
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const int a = axes_[i] < 0 ? axes_[i] + count : axes_[i];
    if (a < 0 || a >= count || inverse_axes_[static_cast<std::size_t>(a)] != -1) refuse();
    axes_[i] = a;
    inverse_axes_[static_cast<std::size_t>(a)] = static_cast<int>(i);
  }
  for (const int a : axes_) transposed_dims_.push_back(at(dims_, a));
}

template <class T>
void Transpose<T>::apply(std::span<const T> x, std::span<T> y) const {
  transpose(x.data(), dims_, axes_, y.data());
}
template <class T>
void Transpose<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  transpose(y.data(), transposed_dims_, inverse_axes_, x.data());
}

template <class T>
Pad<T>::Pad(Shape dims, std::vector<std::pair<Index, Index>> pads) : dims_(std::move(dims)) {
  if (pads.size() != dims_.size())
    fail(ErrorCode::invalid_argument,
         fmt::format("pad: {} pairs for an array of {} axes", pads.size(), dims_.size()));
  for (std::size_t i = 0; i < pads.size(); ++i) {
    if (pads[i].first < 0 || pads[i].second < 0)
      fail(ErrorCode::invalid_argument,
           fmt::format("pad: {} before and {} behind axis {}", pads[i].first, pads[i].second, i));
    begin_.push_back(pads[i].first);
    padded_dims_.push_back(dims_[i] + pads[i].first + pads[i].second);
  }
}

namespace {

// Calls copy(offset in the inner array, offset in the padded one, length) for each run along the last axis.
template <class Copy>
void for_each_run(const Shape& dims, const Shape& begin, const Shape& padded_dims, Copy copy) {
  const Shape padded_strides = strides_of(padded_dims);
  if (array::size_of_shape(dims) == 0) return;
  if (dims.empty()) return copy(Index{0}, Index{0}, Index{1});
  Shape index(dims.size(), 0);
  for (Index from = 0, n = dims.back();; from += n) {
    Index to = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) to += (index[i] + begin[i]) * padded_strides[i];
    copy(from, to, n);
    std::size_t i = dims.size() - 1;
    while (i-- > 0) {
      if (++index[i] < dims[i]) break;
      index[i] = 0;
    }
    if (i == static_cast<std::size_t>(-1)) return;
  }
}

}  // namespace

template <class T>
void Pad<T>::apply(std::span<const T> x, std::span<T> y) const {
  std::fill(y.begin(), y.end(), T{});
  for_each_run(dims_, begin_, padded_dims_,
               [&](Index from, Index to, Index n) { std::copy_n(x.data() + from, n, y.data() + to); });
}
template <class T>
void Pad<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  for_each_run(dims_, begin_, padded_dims_,
               [&](Index to, Index from, Index n) { std::copy_n(y.data() + from, n, x.data() + to); });
}

template <class T>
Sum<T>::Sum(Shape dims, int axis) : lines_(lines_of(dims, axis)) {}

template <class T>
void Sum<T>::apply(std::span<const T> x, std::span<T> y) const {
  std::fill(y.begin(), y.end(), T{});
  const T* in = x.data();
  for (Index o = 0; o < lines_.outer; ++o) {
    T* const out = y.data() + o * lines_.inner;
    for (Index i = 0; i < lines_.length; ++i)
      for (Index c = 0; c < lines_.inner; ++c) out[c] += *in++;
  }
}
template <class T>
void Sum<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  T* out = x.data();
  for (Index o = 0; o < lines_.outer; ++o)
    for (Index i = 0; i < lines_.length; ++i)
      out = std::copy_n(y.data() + o * lines_.inner, lines_.inner, out);
}

#define SHOAL_INSTANTIATE(T)   \
  template class Transpose<T>; \
  template class Pad<T>;       \
  template class Sum<T>;
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop::local
