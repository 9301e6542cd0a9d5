// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/local/sampling.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "shoal/base/error.h"

namespace shoal::linop::local {

template <class T>
Restriction<T>::Restriction(Shape dims, std::vector<Index> indices, int axis)
    : lines_(lines_of(dims, axis)), indices_(std::move(indices)) {
  for (const Index i : indices_)
    if (i < 0 || i >= lines_.length)
      fail(ErrorCode::invalid_argument,
           fmt::format("restriction: index {} along an axis of {}", i, lines_.length));
}

template <class T>
void Restriction<T>::apply(std::span<const T> x, std::span<T> y) const {
  T* out = y.data();
  for (Index o = 0; o < lines_.outer; ++o)
    for (const Index i : indices_)
      out = std::copy_n(x.data() + (o * lines_.length + i) * lines_.inner, lines_.inner, out);
}

template <class T>
void Restriction<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  std::fill(x.begin(), x.end(), T{});
  const T* in = y.data();
  for (Index o = 0; o < lines_.outer; ++o)
    for (const Index i : indices_) {
      T* const out = x.data() + (o * lines_.length + i) * lines_.inner;
      for (Index c = 0; c < lines_.inner; ++c) out[c] += *in++;
    }
}

template <class T>
Interpolation<T>::Interpolation(Shape dims, std::vector<double> positions, int axis)
    : lines_(lines_of(dims, axis)), positions_(std::move(positions)) {
  for (const double p : positions_)
    if (!(p >= 0 && p <= static_cast<double>(lines_.length - 1)))
      fail(ErrorCode::invalid_argument,
           fmt::format("interpolation: position {} along an axis of {}", p, lines_.length));
}

namespace {

// The sample at or below a position, the one above (the same at the end), and the weight of the latter.
struct Pair {
  Index below, above;
  double weight;
};
Pair neighbours(double position, Index length) {
  const Index below = std::min(static_cast<Index>(position), length - 1);
  return {below, std::min(below + 1, length - 1), position - static_cast<double>(below)};
}

}  // namespace

template <class T>
void Interpolation<T>::apply(std::span<const T> x, std::span<T> y) const {
  using Weight = decltype(std::abs(T{}));
  T* out = y.data();
  for (Index o = 0; o < lines_.outer; ++o)
    for (const double position : positions_) {
      const Pair pair = neighbours(position, lines_.length);
      const auto w = static_cast<Weight>(pair.weight);
      const T* const a = x.data() + (o * lines_.length + pair.below) * lines_.inner;
      const T* const b = x.data() + (o * lines_.length + pair.above) * lines_.inner;
      for (Index c = 0; c < lines_.inner; ++c) *out++ = (1 - w) * a[c] + w * b[c];
    }
}

template <class T>
void Interpolation<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  using Weight = decltype(std::abs(T{}));
  std::fill(x.begin(), x.end(), T{});
  const T* in = y.data();
  for (Index o = 0; o < lines_.outer; ++o)
    for (const double position : positions_) {
      const Pair pair = neighbours(position, lines_.length);
      const auto w = static_cast<Weight>(pair.weight);
      T* const a = x.data() + (o * lines_.length + pair.below) * lines_.inner;
      T* const b = x.data() + (o * lines_.length + pair.above) * lines_.inner;
      for (Index c = 0; c < lines_.inner; ++c, ++in) {
        a[c] += (1 - w) * *in;
        b[c] += w * *in;
      }
    }
}

#define SHOAL_INSTANTIATE(T)     \
  template class Restriction<T>; \
  template class Interpolation<T>;
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop::local
