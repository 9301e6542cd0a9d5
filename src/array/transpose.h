// SPDX-License-Identifier: Apache-2.0
// The order of axes reversed: between C and Fortran order.
#pragma once

#include <algorithm>
#include <vector>

#include "shoal/array/layout.h"

namespace shoal::array {

/// `to`, of the reversed shape, gets element (i, j, ..., k) of `from` at (k, ..., j, i). Both in C order;
/// they share no memory.
template <class T>
void reverse_axes(const T* from, const Shape& shape, T* to) {
  const std::size_t axes = shape.size();
  if (size_of_shape(shape) == 0) return;
  if (axes < 2) {
    std::copy_n(from, size_of_shape(shape), to);
    return;
  }
  // Strides in `to` of the axes of `from`.
  std::vector<Index> stride(axes, 1);
  for (std::size_t a = 1; a < axes; ++a) stride[a] = stride[a - 1] * shape[a - 1];
  // Tiles over the first and the last axis, of which one is contiguous on each side; an odometer over the
  // others.
  constexpr Index tile = 32;
  const Index rows = shape.front(), columns = shape.back();
  const Index row_length = size_of_shape(shape) / rows;  // from one row to the next in `from`
  std::vector<Index> index(axes, 0);
  for (Index middle = 0; middle < row_length / columns; ++middle) {
    Index offset = 0;
    for (std::size_t a = 1; a + 1 < axes; ++a) offset += index[a] * stride[a];
    for (Index r = 0; r < rows; r += tile)
      for (Index c = 0; c < columns; c += tile)
        for (Index i = r; i < std::min(r + tile, rows); ++i)
          for (Index k = c; k < std::min(c + tile, columns); ++k)
            to[offset + i + k * stride.back()] = from[i * row_length + middle * columns + k];
    for (std::size_t a = axes - 2; a > 0; --a) {
      if (++index[a] < shape[a]) break;
      index[a] = 0;
    }
  }
}

}  // namespace shoal::array
