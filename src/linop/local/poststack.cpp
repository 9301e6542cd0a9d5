// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/local/poststack.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "linop/local/filter_lines.h"
#include "shoal/base/error.h"

namespace shoal::linop::local {

template <class T>
PoststackModelling<T>::PoststackModelling(Shape dims, std::vector<T> wavelet, int time_axis,
                                          Derivative derivative)
    : lines_(lines_of(dims, time_axis)),
      wavelet_(std::move(wavelet)),
      adjoint_wavelet_(wavelet_.rbegin(), wavelet_.rend()),
      derivative_(derivative) {
  if (wavelet_.empty()) fail(ErrorCode::invalid_argument, "post-stack modelling: the wavelet has no samples");
  for (T& v : adjoint_wavelet_) v = conj_of(v);
}

namespace {

// Rows of D at the ends are zero: the centred derivative has none at 0 and n - 1, the forward one at n - 1.
template <class T>
T derivative_at(const T* x, Index i, Index n, Index stride, bool centered) {
  using Half = decltype(std::abs(T{}));
  if (i + 1 >= n || (centered && i == 0)) return T{};
  return centered ? Half(0.5) * (x[stride] - x[-stride]) : x[stride] - x[0];
}

// D^T at row i, from its rows' values w.
template <class T>
T adjoint_derivative_at(const T* w, Index i, Index n, bool centered) {
  using Half = decltype(std::abs(T{}));
  const auto row = [&](Index r) { return r + 1 >= n || r < (centered ? 1 : 0) ? T{} : w[r]; };
  return centered ? Half(0.5) * (row(i - 1) - row(i + 1)) : row(i - 1) - row(i);
}

}  // namespace

template <class T>
void PoststackModelling<T>::apply(std::span<const T> x, std::span<T> y) const {
  const Index n = lines_.length, inner = lines_.inner, offset = static_cast<Index>(wavelet_.size()) / 2;
  const bool centered = derivative_ == Derivative::centered;
  std::vector<T> padded;
  for (Index o = 0; o < lines_.outer; ++o)
    for (Index c = 0; c < inner; c += filter_tile) {
      const T* const in = x.data() + o * n * inner + c;
      T* const out = y.data() + o * n * inner + c;
      if (inner == 1)
        convolve_line<T>([&](Index i) { return derivative_at(in + i, i, n, 1, centered); }, n, wavelet_,
                         offset, padded, out);
      else
        convolve_panel<T>(
            [&](Index i, Index k) { return derivative_at(in + i * inner + k, i, n, inner, centered); }, n,
            std::min(filter_tile, inner - c), wavelet_, offset, padded, out, inner);
    }
}

template <class T>
void PoststackModelling<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  const Index n = lines_.length, inner = lines_.inner;
  const Index offset = static_cast<Index>(wavelet_.size()) - 1 - static_cast<Index>(wavelet_.size()) / 2;
  const bool centered = derivative_ == Derivative::centered;
  std::vector<T> padded, line(static_cast<std::size_t>(n));
  for (Index o = 0; o < lines_.outer; ++o)
    for (Index c = 0; c < inner; ++c) {
      const T* const in = y.data() + o * n * inner + c;
      T* const out = x.data() + o * n * inner + c;
      convolve_line<T>([&](Index i) { return in[i * inner]; }, n, adjoint_wavelet_, offset, padded,
                       line.data());
      for (Index i = 0; i < n; ++i) out[i * inner] = adjoint_derivative_at(line.data(), i, n, centered);
    }
}

std::vector<double> ricker(Index half, double dt, double frequency) {
  std::vector<double> wavelet(static_cast<std::size_t>(2 * half + 1));
  for (Index i = -half; i <= half; ++i) {
    const double a = std::numbers::pi * frequency * static_cast<double>(i) * dt;
    wavelet[static_cast<std::size_t>(i + half)] = (1 - 2 * a * a) * std::exp(-a * a);
  }
  return wavelet;
}

template class PoststackModelling<float>;
template class PoststackModelling<double>;
template class PoststackModelling<std::complex<float>>;
template class PoststackModelling<std::complex<double>>;

}  // namespace shoal::linop::local
