// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/local/convolution.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "linop/local/filter_lines.h"
#include "linop/local/gather_kernels.h"
#include "shoal/base/error.h"

namespace shoal::linop::local {
namespace {

template <class T>
std::vector<T> reversed_conjugate(const std::vector<T>& h) {
  std::vector<T> result(h.rbegin(), h.rend());
  for (T& v : result) v = conj_of(v);
  return result;
}

template <class T>
void convolve(const Lines& lines, const std::vector<T>& h, Index offset, const T* x, T* y) {
  std::vector<T> padded;
  const Index plane = lines.length * lines.inner;
  for (Index o = 0; o < lines.outer; ++o) {
    const T* const in = x + o * plane;
    T* const out = y + o * plane;
    if (lines.inner == 1) {
      convolve_line<T>([in](Index i) { return in[i]; }, lines.length, h, offset, padded, out);
      continue;
    }
    for (Index c = 0; c < lines.inner; c += filter_tile)
      convolve_panel<T>([&](Index i, Index k) { return in[i * lines.inner + c + k]; }, lines.length,
                        std::min(filter_tile, lines.inner - c), h, offset, padded, out + c, lines.inner);
  }
}

}  // namespace

// The adjoint is x[j] = sum over k of conj(h[k]) y[j + k - offset]: the reversed filter with the mirrored
// offset.
template <class T>
Convolve1D<T>::Convolve1D(Shape dims, std::vector<T> filter, Index offset, int axis)
    : lines_(lines_of(dims, axis)),
      filter_(std::move(filter)),
      adjoint_filter_(reversed_conjugate(filter_)),
      offset_(offset) {
  if (offset < 0 || offset >= static_cast<Index>(filter_.size()))
    fail(ErrorCode::invalid_argument,
         fmt::format("convolution: offset {} of a filter of {} samples", offset, filter_.size()));
}

template <class T>
void Convolve1D<T>::apply(std::span<const T> x, std::span<T> y) const {
  convolve(lines_, filter_, offset_, x.data(), y.data());
}

template <class T>
void Convolve1D<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  convolve(lines_, adjoint_filter_, static_cast<Index>(filter_.size()) - 1 - offset_, y.data(), x.data());
}

template <class T>
FilterBank<T>::FilterBank(std::vector<T> filters, Index length, Index first, Index step)
    : filters_(std::move(filters)), length_(length), first_(first), step_(step) {
  if (length < 1 || length % 2 == 0)
    fail(ErrorCode::invalid_argument, fmt::format("filter bank: filters of {} samples, must be odd", length));
  if (step < 1)
    fail(ErrorCode::invalid_argument, fmt::format("filter bank: a step of {}, must be above 0", step));
  if (filters_.empty() || static_cast<Index>(filters_.size()) % length != 0)
    fail(ErrorCode::invalid_argument,
         fmt::format("filter bank: {} elements are no whole filters of {}", filters_.size(), length));
}

template <class T>
void FilterBank<T>::filter_at(Index position, std::span<T> filter) const {
  const Index last = static_cast<Index>(filters_.size()) / length_ - 1;
  const double place = std::clamp(static_cast<double>(position - first_) / static_cast<double>(step_), 0.0,
                                  static_cast<double>(last));
  const Index below = std::min(static_cast<Index>(place), std::max<Index>(last - 1, 0));
  const auto weight = static_cast<decltype(std::abs(T{}))>(place - static_cast<double>(below));
  const T* const a = filters_.data() + below * length_;
  const T* const b = last == 0 ? a : a + length_;
  for (Index k = 0; k < length_; ++k)
    filter[static_cast<std::size_t>(k)] = (1 - weight) * a[k] + weight * b[k];
}

// Output j takes h_i[j - i + reach] of input i = j - reach + k.
template <class T>
std::vector<T> FilterBank<T>::gather_table(Index begin, Index count, Index n) const {
  std::vector<T> table(static_cast<std::size_t>(count * length_));
  std::vector<T> filter(static_cast<std::size_t>(length_));
  for (Index i = std::max<Index>(0, begin - reach()); i < std::min(n, begin + count + reach()); ++i) {
    filter_at(i, filter);
    for (Index m = 0; m < length_; ++m) {
      const Index output = i + m - reach() - begin;
      if (output < 0 || output >= count) continue;
      table[static_cast<std::size_t>(output * length_ + (length_ - 1 - m))] =
          filter[static_cast<std::size_t>(m)];
    }
  }
  return table;
}

// Input i of the adjoint takes conj(h_i[k]) of output i - reach + k.
template <class T>
std::vector<T> FilterBank<T>::adjoint_gather_table(Index begin, Index count, Index n) const {
  std::vector<T> table(static_cast<std::size_t>(count * length_));
  for (Index i = 0; i < count; ++i) {
    const std::span<T> row(table.data() + i * length_, static_cast<std::size_t>(length_));
    filter_at(begin + i, row);
    for (Index k = 0; k < length_; ++k) {
      const Index from = begin + i - reach() + k;
      row[static_cast<std::size_t>(k)] =
          from < 0 || from >= n ? T{} : conj_of(row[static_cast<std::size_t>(k)]);
    }
  }
  return table;
}

namespace {

// With several sums at a time, which the compiler keeps in one register.
template <class T>
T dot_taps(const T* a, const T* b, Index n) {
  constexpr Index lanes = 16;
  T sums[lanes] = {};
  Index k = 0;
  for (; k + lanes <= n; k += lanes)
    for (Index j = 0; j < lanes; ++j) sums[j] += times(a[k + j], b[k + j]);
  for (; k < n; ++k) sums[k % lanes] += times(a[k], b[k]);
  T sum{};
  for (const T& s : sums) sum += s;
  return sum;
}

}  // namespace

template <class T>
void gather_lines(std::span<const T> table, Index length, const Lines& output, const T* x, T* y) {
  const Index in_plane = (output.length + length - 1) * output.inner,
              out_plane = output.length * output.inner;
  if constexpr (std::is_floating_point_v<T>) {
    for (Index o = 0; o < output.outer; ++o)
      gather_columns(table.data(), length, output.length, output.inner, x + o * in_plane, y + o * out_plane);
    return;
  }
  for (Index o = 0; o < output.outer; ++o)
    for (Index i = 0; i < output.length; ++i) {
      const T* const weights = table.data() + i * length;
      const T* const in = x + o * in_plane + i * output.inner;
      T* const out = y + o * out_plane + i * output.inner;
      if (output.inner == 1) {
        *out = dot_taps(weights, in, length);
        continue;
      }
      for (Index c = 0; c < output.inner; c += filter_tile) {
        const Index width = std::min(filter_tile, output.inner - c);
        T sums[filter_tile] = {};
        for (Index k = 0; k < length; ++k)
          for (Index j = 0; j < width; ++j) sums[j] += times(weights[k], in[k * output.inner + c + j]);
        std::copy_n(sums, width, out + c);
      }
    }
}

template <class T>
NonStationaryConvolve1D<T>::NonStationaryConvolve1D(Shape dims, FilterBank<T> bank, int axis)
    : lines_(lines_of(dims, axis)),
      length_(bank.length()),
      forward_(bank.gather_table(0, lines_.length, lines_.length)),
      adjoint_(bank.adjoint_gather_table(0, lines_.length, lines_.length)) {}

namespace {

template <class T>
void gather_padded(std::span<const T> table, Index length, const Lines& lines, std::span<const T> x, T* y) {
  const Index plane = lines.length * lines.inner, reach = length / 2 * lines.inner;
  std::vector<T> padded(static_cast<std::size_t>(plane + 2 * reach));
  for (Index o = 0; o < lines.outer; ++o) {
    std::copy_n(x.data() + o * plane, plane, padded.data() + reach);
    gather_lines<T>(table, length, {1, lines.length, lines.inner}, padded.data(), y + o * plane);
  }
}

}  // namespace

template <class T>
void NonStationaryConvolve1D<T>::apply(std::span<const T> x, std::span<T> y) const {
  gather_padded<T>(forward_, length_, lines_, x, y.data());
}
template <class T>
void NonStationaryConvolve1D<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  gather_padded<T>(adjoint_, length_, lines_, y, x.data());
}

#define SHOAL_INSTANTIATE(T)                 \
  template class Convolve1D<T>;              \
  template class FilterBank<T>;              \
  template class NonStationaryConvolve1D<T>; \
  template void gather_lines(std::span<const T>, Index, const Lines&, const T*, T*);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop::local
