// SPDX-License-Identifier: Apache-2.0
#include "linop/real_dft.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "linop/panel_product.h"

namespace shoal::linop {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// FFTW has code for these factors; others take a transform of another length inside.
constexpr Index largest_quick_factor = 13;
// Products take n^2, so that the way around wins in the end.
constexpr Index longest = 600;

}  // namespace

template <class R>
bool RealDft<R>::pays(Index n) {
  if (n > longest) return false;
  for (Index factor = 2; factor <= largest_quick_factor; ++factor)
    while (n % factor == 0 && n > 1) n /= factor;
  return n > 1;
}

template <class R>
RealDft<R>::RealDft(Index n)
    : n_(n),
      bins_(n / 2 + 1),
      cosine_(at(bins_ * bins_)),
      sine_(at(bins_ * bins_)),
      even_(at(bins_ * panel_width)),
      odd_(at(bins_ * panel_width)),
      cos_sum_(at(bins_ * panel_width)),
      sin_sum_(at(bins_ * panel_width)) {
  // Columns beyond the last are computed too, so they must be numbers.
  std::fill_n(even_.data(), bins_ * panel_width, R{0});
  std::fill_n(odd_.data(), bins_ * panel_width, R{0});
  for (Index k = 0; k < bins_; ++k)
    for (Index j = 0; j < bins_; ++j) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k * j % n) / static_cast<double>(n);
      cosine_[at(k * bins_ + j)] = static_cast<R>(std::cos(angle));
      sine_[at(k * bins_ + j)] = static_cast<R>(std::sin(angle));
    }
}

// Both parts are multiplied by their matrices.
template <class R>
void RealDft<R>::transform_parts() const {
  multiply_panel(cosine_.data(), bins_, even_.data(), cos_sum_.data());
  multiply_panel(sine_.data(), bins_, odd_.data(), sin_sum_.data());
}

// X_k = sum over j <= n/2 of (x_j + x_(n-j)) cos - i (x_j - x_(n-j)) sin, with what is its own mirror once.
template <class R>
void RealDft<R>::forward(const R* in, Index in_stride, C* out, Index out_stride, Index columns,
                         SpectrumScale<R> scale) const {
  for (Index first = 0; first < columns; first += panel_width) {
    const Index width = std::min(panel_width, columns - first);
    for (Index j = 0; j < bins_; ++j) {
      const R* const a = in + j * in_stride + first;
      R *const even = even_.data() + j * panel_width, *const odd = odd_.data() + j * panel_width;
      if (j == 0 || 2 * j == n_) {
        std::copy_n(a, width, even);
        std::fill_n(odd, width, R{0});
        continue;
      }
      const R* const b = in + (n_ - j) * in_stride + first;
      for (Index c = 0; c < width; ++c) {
        even[c] = a[c] + b[c];
        odd[c] = a[c] - b[c];
      }
    }
    transform_parts();
    for (Index k = 0; k < bins_; ++k) {
      const R f = factor(k, scale);
      const R *const re = cos_sum_.data() + k * panel_width, *const im = sin_sum_.data() + k * panel_width;
      C* const to = out + k * out_stride + first;
      for (Index c = 0; c < width; ++c) to[c] = {f * re[c], -f * im[c]};
    }
  }
}

// x_j and x_(n-j) = sum over k <= n/2 of w_k (Re y_k cos -+ Im y_k sin), w_k = 1 for what is its own mirror,
// else 2.
template <class R>
void RealDft<R>::backward(const C* in, Index in_stride, R* out, Index out_stride, Index columns,
                          SpectrumScale<R> scale) const {
  for (Index first = 0; first < columns; first += panel_width) {
    const Index width = std::min(panel_width, columns - first);
    for (Index k = 0; k < bins_; ++k) {
      const R f = factor(k, scale) * (k == 0 || 2 * k == n_ ? R{1} : R{2});
      const C* const from = in + k * in_stride + first;
      R *const re = even_.data() + k * panel_width, *const im = odd_.data() + k * panel_width;
      for (Index c = 0; c < width; ++c) {
        re[c] = f * from[c].real();
        im[c] = f * from[c].imag();
      }
    }
    transform_parts();
    for (Index j = 0; j < bins_; ++j) {
      const R *const p = cos_sum_.data() + j * panel_width, *const q = sin_sum_.data() + j * panel_width;
      R* const a = out + j * out_stride + first;
      for (Index c = 0; c < width; ++c) a[c] = p[c] - q[c];
      if (j == 0 || 2 * j == n_) continue;
      R* const b = out + (n_ - j) * out_stride + first;
      for (Index c = 0; c < width; ++c) b[c] = p[c] + q[c];
    }
  }
}

template class RealDft<float>;
template class RealDft<double>;

}  // namespace shoal::linop
