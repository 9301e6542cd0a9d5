// SPDX-License-Identifier: Apache-2.0
#include "linop/panel_copy.h"

#include <algorithm>

#include "linop/cache_line.h"

namespace shoal::linop {

using array::Index;

void load_rows(const double* rows, Index apart, Index n, double* panel);
void load_rows(const float* rows, Index apart, Index n, float* panel);
void store_rows(const double* panel, Index n, double* rows, Index apart);
void store_rows(const float* panel, Index n, float* rows, Index apart);

namespace {

namespace simd = array::simd;

// Lanes of 64 bits: those of `b` change places with those of `a` that are `apart` further.
template <int apart>
SHOAL_INLINE void exchange(simd::Doubles& a, simd::Doubles& b) {
  const simd::Doubles x = a, y = b;
  if constexpr (apart == 1) {
    a = __builtin_shufflevector(x, y, 0, 8, 2, 10, 4, 12, 6, 14);
    b = __builtin_shufflevector(x, y, 1, 9, 3, 11, 5, 13, 7, 15);
  } else if constexpr (apart == 2) {
    a = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
    b = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
  } else {
    a = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11);
    b = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15);
  }
}
template <int apart, int count>
SHOAL_INLINE void exchange_all(simd::Doubles* lines) {
  constexpr int distance = apart * count / 8;
  for (int i = 0; i < count; ++i)
    if (i / distance % 2 == 0) exchange<apart>(lines[i], lines[i + distance]);
}
// A square of complex numbers, of which 8 / count lanes are one.
template <int count>
SHOAL_INLINE void transpose(simd::Doubles* lines) {
  if constexpr (count == 8) exchange_all<1, count>(lines);
  exchange_all<2, count>(lines);
  exchange_all<4, count>(lines);
}

// Panels from and to rows of n complex numbers that are `apart` reals from each other.
template <class R>
SHOAL_INLINE void load_all_rows(const R* rows, Index apart, Index n, R* panel) {
  constexpr int width = static_cast<int>(panel_columns<R>);
  Index j = 0;
  for (; j + width <= n; j += width) {
    simd::Doubles lines[width];
    for (int r = 0; r < width; ++r) load(lines[r], rows + r * apart + 2 * j);
    transpose<width>(lines);
    for (int r = 0; r < width; ++r) store(panel + 2 * width * (j + r), lines[r]);
  }
  for (; j < n; ++j)
    for (int r = 0; r < width; ++r)
      std::memcpy(panel + 2 * (width * j + r), rows + r * apart + 2 * j, 2 * sizeof(R));
}
template <class R>
SHOAL_INLINE void store_all_rows(const R* panel, Index n, R* rows, Index apart) {
  constexpr int width = static_cast<int>(panel_columns<R>);
  Index j = 0;
  for (; j + width <= n; j += width) {
    simd::Doubles lines[width];
    for (int r = 0; r < width; ++r) load(lines[r], panel + 2 * width * (j + r));
    transpose<width>(lines);
    for (int r = 0; r < width; ++r) store(rows + r * apart + 2 * j, lines[r]);
  }
  for (; j < n; ++j)
    for (int r = 0; r < width; ++r)
      std::memcpy(rows + r * apart + 2 * j, panel + 2 * (width * j + r), 2 * sizeof(R));
}

}  // namespace

SHOAL_CLONES void load_rows(const double* rows, Index apart, Index n, double* panel) {
  load_all_rows(rows, apart, n, panel);
}
SHOAL_CLONES void load_rows(const float* rows, Index apart, Index n, float* panel) {
  load_all_rows(rows, apart, n, panel);
}
SHOAL_CLONES void store_rows(const double* panel, Index n, double* rows, Index apart) {
  store_all_rows(panel, n, rows, apart);
}
SHOAL_CLONES void store_rows(const float* panel, Index n, float* rows, Index apart) {
  store_all_rows(panel, n, rows, apart);
}

template <class R>
void load_panel(PanelView<const std::complex<R>> from, Index n, Index columns, std::complex<R>* panel) {
  constexpr Index width = panel_columns<R>;
  if (columns == width && from.down == 1)
    return load_rows(reinterpret_cast<const R*>(from.data), 2 * from.across, n, reinterpret_cast<R*>(panel));
  for (Index j = 0; j < n; ++j)
    for (Index c = 0; c < width; ++c)
      panel[j * width + c] = c < columns ? from.data[j * from.down + c * from.across] : std::complex<R>{};
}

template <class R>
void store_panel(const std::complex<R>* panel, Index n, Index columns, PanelView<std::complex<R>> to) {
  constexpr Index width = panel_columns<R>;
  if (columns == width && to.down == 1)
    return store_rows(reinterpret_cast<const R*>(panel), n, reinterpret_cast<R*>(to.data), 2 * to.across);
  for (Index j = 0; j < n; ++j)
    for (Index c = 0; c < columns; ++c) to.data[j * to.down + c * to.across] = panel[j * width + c];
}

#define SHOAL_INSTANTIATE(R)                                                                  \
  template void load_panel(PanelView<const std::complex<R>>, Index, Index, std::complex<R>*); \
  template void store_panel(const std::complex<R>*, Index, Index, PanelView<std::complex<R>>);
SHOAL_INSTANTIATE(float)
SHOAL_INSTANTIATE(double)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
