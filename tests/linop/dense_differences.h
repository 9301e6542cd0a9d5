// SPDX-License-Identifier: Apache-2.0
// The formulas of derivatives.h as dense matrices along one axis, and matrices applied along an axis of a
// full array.
#pragma once

#include "linop/operator_checks.h"
#include "shoal/linop/derivatives.h"

namespace shoal::linop::checks {

using Matrix = Dense<double>;

inline Matrix first_matrix(Index n, const FirstDerivative& options) {
  Matrix m(n, n);
  const double d = options.sampling;
  const auto add = [&](Index row, Index col, double value) { m.at(row, col) += value; };
  if (options.kind == Difference::forward)
    for (Index i = 0; i <= n - 2; ++i) add(i, i + 1, 1 / d), add(i, i, -1 / d);
  if (options.kind == Difference::backward)
    for (Index i = 1; i <= n - 1; ++i) add(i, i, 1 / d), add(i, i - 1, -1 / d);
  if (options.kind != Difference::centered) return m;
  const auto three = [&](Index i) { add(i, i + 1, 0.5 / d), add(i, i - 1, -0.5 / d); };
  if (options.order == 3)
    for (Index i = 1; i <= n - 2; ++i) three(i);
  if (options.order == 5) {
    for (Index i = 2; i <= n - 3; ++i)
      add(i, i - 2, 1 / (12 * d)), add(i, i - 1, -8 / (12 * d)), add(i, i + 1, 8 / (12 * d)),
          add(i, i + 2, -1 / (12 * d));
    if (options.edge && n >= 3) {
      three(1);
      if (n >= 4) three(n - 2);
    }
  }
  if (options.edge && n >= 2) {
    add(0, 1, 1 / d), add(0, 0, -1 / d);
    add(n - 1, n - 1, 1 / d), add(n - 1, n - 2, -1 / d);
  }
  return m;
}

inline Matrix second_matrix(Index n, const SecondDerivative& options) {
  Matrix m(n, n);
  const double c = 1 / (options.sampling * options.sampling);
  // Rows of three neighbouring columns from `first` on.
  const auto add = [&](Index row, Index first) {
    m.at(row, first) += c;
    m.at(row, first + 1) += -2 * c;
    m.at(row, first + 2) += c;
  };
  for (Index i = 0; i + 2 < n; ++i) {
    if (options.kind == Difference::forward) add(i, i);
    if (options.kind == Difference::backward) add(i + 2, i);
    if (options.kind == Difference::centered) add(i + 1, i);
  }
  if (options.kind == Difference::centered && options.edge && n >= 3) {
    add(0, 0);
    add(n - 1, n - 3);
  }
  return m;
}

/// y += factor M x along `axis`.
template <class T>
void add_along(const Matrix& m, const Shape& shape, int axis, const std::vector<T>& x, std::vector<T>& y,
               double factor = 1) {
  const Index n = shape[static_cast<std::size_t>(axis)];
  Index behind = 1;
  for (std::size_t a = static_cast<std::size_t>(axis) + 1; a < shape.size(); ++a) behind *= shape[a];
  const Index slabs = n * behind == 0 ? 0 : static_cast<Index>(x.size()) / (n * behind);
  struct NonZero {
    Index row, col;
  };
  std::vector<NonZero> non_zeros;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      if (m.at(i, j) != 0) non_zeros.push_back({i, j});
  for (Index slab = 0; slab < slabs; ++slab)
    for (const auto& [i, j] : non_zeros) {
      const auto value = static_cast<Real<T>>(factor * m.at(i, j));
      T* to = y.data() + (slab * n + i) * behind;
      const T* from = x.data() + (slab * n + j) * behind;
      for (Index k = 0; k < behind; ++k) to[k] += value * from[k];
    }
}

template <class T>
std::vector<T> apply_along(const Matrix& m, const Shape& shape, int axis, const std::vector<T>& x) {
  std::vector<T> y(x.size(), T(0));
  add_along(m, shape, axis, x, y);
  return y;
}

}  // namespace shoal::linop::checks
