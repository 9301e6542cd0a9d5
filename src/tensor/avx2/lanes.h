// SPDX-License-Identifier: Apache-2.0
// Small 256-bit helpers. Internal linkage throughout (raw_kernels.h says why).
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace shoal::tensor::avx2 {
namespace {

/// The sum of 8 lanes in the one order that all products use: lane j with j + 4, then 2, 1 apart.
inline float sum_lanes(__m256 v) {
  const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}

inline __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline __m128i load_half(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

inline std::uint32_t load_u32(const void* p) {
  std::uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

/// All ones in the first n lanes of 8.
inline __m256i first_lanes(std::int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Up to 8 elements; `count` is a constant 8 in the loops, and only what is there is read or written.

inline __m256 load_floats(const float* p, std::int64_t count) {
  if (count == 8) return _mm256_loadu_ps(p);
  float eight[8] = {};
  std::memcpy(eight, p, static_cast<std::size_t>(count) * sizeof(float));
  return _mm256_loadu_ps(eight);
}

inline __m128i load_words(const void* p, std::int64_t count) {
  if (count == 8) return load_half(p);
  std::uint16_t eight[8] = {};
  std::memcpy(eight, p, static_cast<std::size_t>(count) * sizeof(std::uint16_t));
  return load_half(eight);
}

inline void store_floats(float* p, __m256 v, std::int64_t count) {
  if (count == 8) return _mm256_storeu_ps(p, v);
  float eight[8];
  _mm256_storeu_ps(eight, v);
  std::memcpy(p, eight, static_cast<std::size_t>(count) * sizeof(float));
}

/// Calls step(position, count) for each 8 elements; the last count may be smaller.
template <class Step>
inline void for_each_8(std::int64_t n, Step step) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) step(i, 8);
  if (i < n) step(i, n - i);
}

}  // namespace
}  // namespace shoal::tensor::avx2
