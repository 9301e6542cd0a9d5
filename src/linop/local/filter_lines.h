// SPDX-License-Identifier: Apache-2.0
// The inner loop of the convolutions.
#pragma once

#include <vector>

#include "linop/scalar_math.h"
#include "shoal/linop/local/lines.h"

namespace shoal::linop::local {

/// Outputs that are summed in registers at a time.
inline constexpr Index filter_tile = 32;

/// One tile: out[j] = sum over k < taps of h[k] in[j - k] for j < count <= filter_tile. What lies from
/// in[-(taps - 1)] to in[count - 1] is read.
template <class T>
inline void filter_tile_into(const T* in, const T* h, Index taps, Index count, T* out) {
  if (count == filter_tile) {  // a constant trip count keeps the sums in registers
    T sums[filter_tile] = {};
    for (Index k = 0; k < taps; ++k)
      for (Index j = 0; j < filter_tile; ++j) sums[j] += times(h[k], in[j - k]);
    for (Index j = 0; j < filter_tile; ++j) out[j] = sums[j];
    return;
  }
  for (Index j = 0; j < count; ++j) {
    T sum{};
    for (Index k = 0; k < taps; ++k) sum += times(h[k], in[j - k]);
    out[j] = sum;
  }
}

/// y[i] = sum over k of h[k] x[i - k + offset] for i < n, x being 0 outside [0, n). `padded` is room for
/// n + 2 * (taps - 1) elements. `load(i)` gives x[i].
template <class T, class Load>
void convolve_line(Load load, Index n, const std::vector<T>& h, Index offset, std::vector<T>& padded, T* y) {
  const Index taps = static_cast<Index>(h.size());
  padded.assign(static_cast<std::size_t>(n + 2 * (taps - 1)), T{});
  T* const x = padded.data() + (taps - 1);
  for (Index i = 0; i < n; ++i) x[i] = load(i);
  for (Index i = 0; i < n; i += filter_tile)
    filter_tile_into(x + i + offset, h.data(), taps, n - i < filter_tile ? n - i : filter_tile, y + i);
}

/// The same for `width` neighbouring lines at once, whose samples are `stride` elements apart. `load(i, c)`
/// gives sample i of line c; `padded` holds (n + 2 (taps - 1)) * width.
template <class T, class Load>
void convolve_panel(Load load, Index n, Index width, const std::vector<T>& h, Index offset,
                    std::vector<T>& padded, T* y, Index stride) {
  const Index taps = static_cast<Index>(h.size());
  padded.assign(static_cast<std::size_t>((n + 2 * (taps - 1)) * width), T{});
  T* const x = padded.data() + (taps - 1) * width;
  for (Index i = 0; i < n; ++i)
    for (Index c = 0; c < width; ++c) x[i * width + c] = load(i, c);
  for (Index i = 0; i < n; ++i) {
    T sums[filter_tile] = {};
    for (Index k = 0; k < taps; ++k) {
      const T* const row = x + (i + offset - k) * width;
      for (Index c = 0; c < width; ++c) sums[c] += times(h[static_cast<std::size_t>(k)], row[c]);
    }
    for (Index c = 0; c < width; ++c) y[i * stride + c] = sums[c];
  }
}

}  // namespace shoal::linop::local
