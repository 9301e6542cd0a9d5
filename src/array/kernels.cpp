// SPDX-License-Identifier: Apache-2.0
#include "array/kernels.h"

#include <algorithm>
#include <cmath>

#include "shoal/array/simd.h"
#include "shoal/array/streaming.h"

namespace shoal::array::kernels {
namespace {

using simd::Doubles;
using simd::lanes;
using simd::Vector;

// Four vectors a step: as many sums are under way at once as hide the latency of an addition.
constexpr std::size_t unroll = 4;

// How much is computed in the first-level cache before it is written past the caches.
constexpr Index stream_block_bytes = 2048;

// The sum over n elements of term(k, partial sum), by vectors from `first`, and of rest(i) for what is left.
template <class Term>
SHOAL_INLINE void accumulate(Doubles& sum, std::size_t& i, std::size_t n, const Term& term) {
  Doubles partial[unroll] = {};
  for (; i + unroll * lanes <= n; i += unroll * lanes) {
    term(partial[0], i);
    term(partial[1], i + lanes);
    term(partial[2], i + 2 * lanes);
    term(partial[3], i + 3 * lanes);
  }
  sum = (partial[0] + partial[1]) + (partial[2] + partial[3]);
  for (; i + lanes <= n; i += lanes) term(sum, i);
}

template <class R>
SHOAL_INLINE double dot_body(const R* x, const R* y, std::size_t n) {
  Doubles sum;
  std::size_t i = 0;
  accumulate(
      sum, i, n, [ x, y ](Doubles & partial, std::size_t k) __attribute__((always_inline)) {
        Vector<R> a, b;
        Doubles wide_a, wide_b;
        simd::load_ahead(a, x + k);
        simd::load_ahead(b, y + k);
        simd::widen(wide_a, a);
        simd::widen(wide_b, b);
        partial += wide_a * wide_b;
      });
  double rest = 0;
  for (; i < n; ++i) rest += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return simd::even_sum(sum) + simd::odd_sum(sum) + rest;
}

template <class R>
SHOAL_INLINE PairProducts dot_pairs_body(const R* x, const R* y, std::size_t n) {
  Doubles direct[2] = {}, crossed[2] = {};
  const auto step = [&](std::size_t which, std::size_t k) __attribute__((always_inline)) {
    Vector<R> a, b;
    Doubles wide_a, wide_b;
    simd::load_ahead(a, x + k);
    simd::load_ahead(b, y + k);
    simd::widen(wide_a, a);
    simd::widen(wide_b, b);
    direct[which] += wide_a * wide_b;
    simd::swap_pairs(wide_b);
    crossed[which] += wide_a * wide_b;
  };
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    step(0, i);
    step(1, i + lanes);
  }
  if (i + lanes <= n) {
    step(0, i);
    i += lanes;
  }
  direct[0] += direct[1];
  crossed[0] += crossed[1];
  PairProducts sums{simd::even_sum(direct[0]), simd::odd_sum(direct[0]), simd::even_sum(crossed[0]),
                    simd::odd_sum(crossed[0])};
  for (; i < n; i += 2) {
    const auto re_x = static_cast<double>(x[i]), im_x = static_cast<double>(x[i + 1]);
    const auto re_y = static_cast<double>(y[i]), im_y = static_cast<double>(y[i + 1]);
    sums.even += re_x * re_y;
    sums.odd += im_x * im_y;
    sums.crossed_even += re_x * im_y;
    sums.crossed_odd += im_x * re_y;
  }
  return sums;
}

template <bool scaled, class R>
SHOAL_INLINE double sum_squares_body(double factor, const R* x, std::size_t n) {
  Doubles sum;
  std::size_t i = 0;
  accumulate(
      sum, i, n, [&](Doubles & partial, std::size_t k) __attribute__((always_inline)) {
        Vector<R> a;
        Doubles wide;
        simd::load_ahead(a, x + k);
        simd::widen(wide, a);
        if constexpr (scaled) wide *= factor;
        partial += wide * wide;
      });
  double rest = 0;
  for (; i < n; ++i) rest += (static_cast<double>(x[i]) * factor) * (static_cast<double>(x[i]) * factor);
  return simd::even_sum(sum) + simd::odd_sum(sum) + rest;
}

template <class R>
SHOAL_INLINE double sum_magnitudes_body(const R* x, std::size_t n) {
  Doubles sum;
  std::size_t i = 0;
  accumulate(
      sum, i, n, [x](Doubles & partial, std::size_t k) __attribute__((always_inline)) {
        Vector<R> a;
        Doubles wide;
        simd::load_ahead(a, x + k);
        simd::widen(wide, a);
        partial += wide < 0.0 ? -wide : wide;
      });
  double rest = 0;
  for (; i < n; ++i) rest += std::fabs(static_cast<double>(x[i]));
  return simd::even_sum(sum) + simd::odd_sum(sum) + rest;
}

template <class R>
SHOAL_INLINE Extreme largest_magnitude_body(const R* x, std::size_t n) {
  Vector<R> largest = {};
  auto nan = largest != largest;
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    Vector<R> a;
    simd::load_ahead(a, x + i);
    nan |= a != a;
    a = a < R(0) ? -a : a;
    largest = a > largest ? a : largest;
  }
  Extreme result;
  for (std::size_t k = 0; k < lanes; ++k) {
    result.value = std::max(result.value, static_cast<double>(largest[k]));
    result.nan = result.nan || nan[k] != 0;
  }
  for (; i < n; ++i) {
    const double magnitude = std::fabs(static_cast<double>(x[i]));
    result.nan = result.nan || std::isnan(magnitude);
    if (magnitude > result.value) result.value = magnitude;
  }
  return result;
}

// Vectors that multiply complex elements laid out as pairs: a * x = real x + crossed swap(x).
template <class R>
struct Factor {
  Vector<R> real, crossed;
  SHOAL_INLINE explicit Factor(std::complex<R> a) {
    for (std::size_t k = 0; k < lanes; ++k) {
      real[k] = a.real();
      crossed[k] = k % 2 == 0 ? -a.imag() : a.imag();
    }
  }
  SHOAL_INLINE void multiply(Vector<R>& x) const {
    Vector<R> swapped = x;
    simd::swap_pairs(swapped);
    x = real * x + crossed * swapped;
  }
};

// The same of a real factor.
template <class R>
struct RealFactor {
  R real;
  SHOAL_INLINE explicit RealFactor(R a) : real(a) {}
  SHOAL_INLINE void multiply(Vector<R>& x) const { x *= real; }
};

template <class R, class A, class B>
SHOAL_INLINE std::size_t linear_loop(const A& by_a, const R* x, const B& by_b, const R* y, R* out,
                                     std::size_t n) {
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    Vector<R> u, v;
    simd::load(u, x + i);
    simd::load(v, y + i);
    by_a.multiply(u);
    by_b.multiply(v);
    v += u;
    simd::store(out + i, v);
  }
  return i;
}

template <class R, class A, class B>
SHOAL_INLINE std::size_t linear_vectors(const A& by_a, const R* x, const B& by_b, const R* y, R* out,
                                        std::size_t n, bool streaming) {
  if (!streaming || !can_stream(out)) return linear_loop(by_a, x, by_b, y, out, n);
  constexpr std::size_t block = stream_block_bytes / sizeof(R);
  alignas(64) R values[block];
  std::size_t done = 0;
  for (; done + block <= n; done += block) {
    linear_loop(by_a, x + done, by_b, y + done, values, block);
    stream_lines(out + done, values, stream_block_bytes);
  }
  simd::end_streaming();
  return done + linear_loop(by_a, x + done, by_b, y + done, out + done, n - done);
}

template <class R>
SHOAL_INLINE void linear_body(R a, const R* x, R b, const R* y, R* out, std::size_t n, bool streaming) {
  std::size_t i = linear_vectors(RealFactor<R>(a), x, RealFactor<R>(b), y, out, n, streaming);
  for (; i < n; ++i) out[i] = a * x[i] + b * y[i];
}

template <class R>
SHOAL_INLINE void linear_pairs_body(R a, const R* x, std::complex<R> b, const R* y, R* out, std::size_t n,
                                    bool streaming) {
  std::size_t i = linear_vectors(RealFactor<R>(a), x, Factor<R>(b), y, out, n, streaming);
  for (; i < n; i += 2) {
    const R re_y = y[i], im_y = y[i + 1];
    out[i] = a * x[i] + (b.real() * re_y - b.imag() * im_y);
    out[i + 1] = a * x[i + 1] + (b.real() * im_y + b.imag() * re_y);
  }
}

template <class R>
SHOAL_INLINE void linear_pairs_body(std::complex<R> a, const R* x, std::complex<R> b, const R* y, R* out,
                                    std::size_t n, bool streaming) {
  std::size_t i = linear_vectors(Factor<R>(a), x, Factor<R>(b), y, out, n, streaming);
  for (; i < n; i += 2) {
    const R re_x = x[i], im_x = x[i + 1], re_y = y[i], im_y = y[i + 1];
    out[i] = (a.real() * re_x - a.imag() * im_x) + (b.real() * re_y - b.imag() * im_y);
    out[i + 1] = (a.real() * im_x + a.imag() * re_x) + (b.real() * im_y + b.imag() * re_y);
  }
}

template <class R>
SHOAL_INLINE double axpy_norm2_body(R a, const R* x, R* y, std::size_t n) {
  Doubles sum;
  std::size_t i = 0;
  accumulate(
      sum, i, n, [ a, x, y ](Doubles & partial, std::size_t k) __attribute__((always_inline)) {
        Vector<R> u, v;
        Doubles wide;
        simd::load(u, x + k);
        simd::load(v, y + k);
        v += a * u;
        simd::store(y + k, v);
        simd::widen(wide, v);
        partial += wide * wide;
      });
  double rest = 0;
  for (; i < n; ++i) {
    y[i] += a * x[i];
    rest += static_cast<double>(y[i]) * static_cast<double>(y[i]);
  }
  return simd::even_sum(sum) + simd::odd_sum(sum) + rest;
}

template <class R>
SHOAL_INLINE double axpy_norm2_pairs_body(std::complex<R> a, const R* x, R* y, std::size_t n) {
  const Factor<R> by_a(a);
  Doubles sum;
  std::size_t i = 0;
  accumulate(
      sum, i, n, [&by_a, x, y ](Doubles & partial, std::size_t k) __attribute__((always_inline)) {
        Vector<R> u, v;
        Doubles wide;
        simd::load(u, x + k);
        simd::load(v, y + k);
        by_a.multiply(u);
        v += u;
        simd::store(y + k, v);
        simd::widen(wide, v);
        partial += wide * wide;
      });
  double rest = 0;
  for (; i < n; i += 2) {
    const R re_x = x[i], im_x = x[i + 1];
    y[i] += a.real() * re_x - a.imag() * im_x;
    y[i + 1] += a.real() * im_x + a.imag() * re_x;
    rest += static_cast<double>(y[i]) * static_cast<double>(y[i]);
    rest += static_cast<double>(y[i + 1]) * static_cast<double>(y[i + 1]);
  }
  return simd::even_sum(sum) + simd::odd_sum(sum) + rest;
}

}  // namespace

#define SHOAL_ARRAY_KERNELS(R)                                                                               \
  SHOAL_CLONES double dot(const R* x, const R* y, std::size_t n) { return dot_body(x, y, n); }               \
  SHOAL_CLONES PairProducts dot_pairs(const R* x, const R* y, std::size_t n) {                               \
    return dot_pairs_body(x, y, n);                                                                          \
  }                                                                                                          \
  SHOAL_CLONES double sum_squares(const R* x, std::size_t n) { return sum_squares_body<false>(1, x, n); }    \
  SHOAL_CLONES double sum_squares_scaled(double factor, const R* x, std::size_t n) {                         \
    return sum_squares_body<true>(factor, x, n);                                                             \
  }                                                                                                          \
  SHOAL_CLONES double sum_magnitudes(const R* x, std::size_t n) { return sum_magnitudes_body(x, n); }        \
  SHOAL_CLONES Extreme largest_magnitude(const R* x, std::size_t n) { return largest_magnitude_body(x, n); } \
  SHOAL_CLONES void linear(R a, const R* x, R b, const R* y, R* out, std::size_t n, bool streaming) {        \
    linear_body(a, x, b, y, out, n, streaming);                                                              \
  }                                                                                                          \
  SHOAL_CLONES void linear_pairs(R a, const R* x, std::complex<R> b, const R* y, R* out, std::size_t n,      \
                                 bool streaming) {                                                           \
    linear_pairs_body(a, x, b, y, out, n, streaming);                                                        \
  }                                                                                                          \
  SHOAL_CLONES void linear_pairs(std::complex<R> a, const R* x, std::complex<R> b, const R* y, R* out,       \
                                 std::size_t n, bool streaming) {                                            \
    linear_pairs_body(a, x, b, y, out, n, streaming);                                                        \
  }                                                                                                          \
  SHOAL_CLONES double axpy_norm2(R a, const R* x, R* y, std::size_t n) {                                     \
    return axpy_norm2_body(a, x, y, n);                                                                      \
  }                                                                                                          \
  SHOAL_CLONES double axpy_norm2_pairs(std::complex<R> a, const R* x, R* y, std::size_t n) {                 \
    return axpy_norm2_pairs_body(a, x, y, n);                                                                \
  }
SHOAL_ARRAY_KERNELS(float)
SHOAL_ARRAY_KERNELS(double)
#undef SHOAL_ARRAY_KERNELS

}  // namespace shoal::array::kernels
