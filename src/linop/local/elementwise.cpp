// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/local/elementwise.h"

#include <algorithm>
#include <complex>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "linop/scalar_math.h"
#include "shoal/base/error.h"

namespace shoal::linop::local {
namespace {

void require_sizes(Index rows, Index cols, const char* what) {
  if (rows < 0 || cols < 0) fail(ErrorCode::invalid_argument, fmt::format("{} of {} x {}", what, rows, cols));
}

template <class T>
void copy_and_clear(std::span<const T> from, std::span<T> to) {
  const std::size_t n = std::min(from.size(), to.size());
  std::copy_n(from.data(), n, to.data());
  std::fill(to.begin() + static_cast<std::ptrdiff_t>(n), to.end(), T{});
}

}  // namespace

template <class T>
Diagonal<T>::Diagonal(std::vector<T> diagonal)
    : diagonal_(std::make_shared<const std::vector<T>>(std::move(diagonal))) {}

template <class T>
void Diagonal<T>::apply(std::span<const T> x, std::span<T> y) const {
  const T* const d = diagonal_->data();
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = times(d[i], x[i]);
}

template <class T>
void Diagonal<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  const T* const d = diagonal_->data();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = times(conj_of(d[i]), y[i]);
}

template <class T>
Identity<T>::Identity(Index rows, Index cols) : rows_(rows), cols_(cols) {
  require_sizes(rows, cols, "identity");
}
template <class T>
void Identity<T>::apply(std::span<const T> x, std::span<T> y) const {
  copy_and_clear(x, y);
}
template <class T>
void Identity<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  copy_and_clear(y, x);
}

template <class T>
Zero<T>::Zero(Index rows, Index cols) : rows_(rows), cols_(cols) {
  require_sizes(rows, cols, "zero operator");
}
template <class T>
void Zero<T>::apply(std::span<const T>, std::span<T> y) const {
  std::fill(y.begin(), y.end(), T{});
}
template <class T>
void Zero<T>::apply_adjoint(std::span<const T>, std::span<T> x) const {
  std::fill(x.begin(), x.end(), T{});
}

#define SHOAL_INSTANTIATE(T)  \
  template class Diagonal<T>; \
  template class Identity<T>; \
  template class Zero<T>;
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop::local
