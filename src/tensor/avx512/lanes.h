// SPDX-License-Identifier: Apache-2.0
// Small 512-bit helpers. Internal linkage throughout (raw_kernels.h says why).
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace shoal::tensor::avx512 {
namespace {

/// The sum of 16 lanes in the one order that all products use: lane j with j + 8, then 4, 2, 1 apart.
inline float sum_lanes(__m512 v) {
  const __m256 v8 = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}

inline __mmask16 first_lanes(std::int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }

inline __m512i load(const void* p) { return _mm512_loadu_si512(p); }

inline std::uint32_t load_u32(const void* p) {
  std::uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

inline std::uint64_t load_u64(const void* p) {
  std::uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

}  // namespace
}  // namespace shoal::tensor::avx512
