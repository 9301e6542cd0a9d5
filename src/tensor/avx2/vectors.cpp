// SPDX-License-Identifier: Apache-2.0
// Norm, activation, softmax and attention rows in AVX2, and the table of the set.
#include "tensor/avx2/lanes.h"
#include "tensor/avx2/parts.h"

namespace shoal::tensor {
namespace avx2 {
namespace {

inline __m256 load_halves(const std::uint16_t* p, std::int64_t count) {
  return _mm256_cvtph_ps(load_words(p, count));
}

inline __m256 power_of_two(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

// exp(x), relative error below 2e-7: x = n ln 2 + r with |r| <= ln 2 / 2, exp(r) by its Taylor polynomial of
// degree 7 (remainder r^8 / 8! < 6e-9), ln 2 in two parts so that r is exact enough. 2^n is applied as two
// factors, which covers overflow and subnormal results. Infinities give infinity and 0; NaN stays NaN,
// because min and max return their second operand for it.
inline __m256 exponential(__m256 x) {
  x = _mm256_min_ps(_mm256_set1_ps(90.0f), x);
  x = _mm256_max_ps(_mm256_set1_ps(-110.0f), x);
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693145752f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(1.42860677e-6f), r);
  __m256 p = _mm256_set1_ps(1.0f / 5040);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 720));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 120));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 24));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 6));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  const __m256i exponent = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(exponent, 1);
  p = _mm256_mul_ps(p, power_of_two(half));
  return _mm256_mul_ps(p, power_of_two(_mm256_sub_epi32(exponent, half)));
}

void rms_norm(const float* x, const float* weight, float epsilon, float* out, std::int64_t n) {
  __m256 squares = _mm256_setzero_ps();
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    const __m256 v = load_floats(x + i, count);
    squares = _mm256_fmadd_ps(v, v, squares);
  });
  const float mean = sum_lanes(squares) / static_cast<float>(n);
  const __m256 factor = _mm256_set1_ps(1.0f / __builtin_sqrtf(mean + epsilon));
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    const __m256 v = _mm256_mul_ps(load_floats(x + i, count), factor);
    store_floats(out + i, _mm256_mul_ps(v, load_floats(weight + i, count)), count);
  });
}

void silu_multiply(float* gate, const float* up, std::int64_t n) {
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    const __m256 v = load_floats(gate + i, count);
    const __m256 minus_v = _mm256_xor_ps(v, _mm256_set1_ps(-0.0f));
    const __m256 silu = _mm256_div_ps(v, _mm256_add_ps(_mm256_set1_ps(1.0f), exponential(minus_v)));
    store_floats(gate + i, _mm256_mul_ps(silu, load_floats(up + i, count)), count);
  });
}

void add(float* x, const float* y, std::int64_t n) {
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    store_floats(x + i, _mm256_add_ps(load_floats(x + i, count), load_floats(y + i, count)), count);
  });
}

inline float max_lane(__m256 v) {
  const __m128 v4 = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 v2 = _mm_max_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_max_ss(v2, _mm_movehdup_ps(v2)));
}

// `v` with `other` in the lanes from `count` on.
inline __m256 first_or(__m256 v, __m256 other, std::int64_t count) {
  return count == 8 ? v : _mm256_blendv_ps(other, v, _mm256_castsi256_ps(first_lanes(count)));
}

void softmax(float* x, std::int64_t n) {
  __m256 maxima = _mm256_set1_ps(-__builtin_inff());
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    maxima = _mm256_max_ps(maxima, first_or(load_floats(x + i, count), maxima, count));
  });
  const __m256 maximum = _mm256_set1_ps(max_lane(maxima));
  __m256 sums = _mm256_setzero_ps();
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    const __m256 e = exponential(_mm256_sub_ps(load_floats(x + i, count), maximum));
    sums = _mm256_add_ps(sums, first_or(e, _mm256_setzero_ps(), count));
    store_floats(x + i, e, count);
  });
  const __m256 sum = _mm256_set1_ps(sum_lanes(sums));
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    store_floats(x + i, _mm256_div_ps(load_floats(x + i, count), sum), count);
  });
}

float dot_f32(const float* q, const float* k, std::int64_t n) {
  __m256 sums = _mm256_setzero_ps();
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    sums = _mm256_fmadd_ps(load_floats(q + i, count), load_floats(k + i, count), sums);
  });
  return sum_lanes(sums);
}

float dot_f16(const float* q, const std::uint16_t* k, std::int64_t n) {
  __m256 sums = _mm256_setzero_ps();
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    sums = _mm256_fmadd_ps(load_floats(q + i, count), load_halves(k + i, count), sums);
  });
  return sum_lanes(sums);
}

void accumulate_f32(float weight, const float* v, float* out, std::int64_t n) {
  const __m256 w = _mm256_set1_ps(weight);
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    store_floats(out + i, _mm256_fmadd_ps(w, load_floats(v + i, count), load_floats(out + i, count)), count);
  });
}

void accumulate_f16(float weight, const std::uint16_t* v, float* out, std::int64_t n) {
  const __m256 w = _mm256_set1_ps(weight);
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    store_floats(out + i, _mm256_fmadd_ps(w, load_halves(v + i, count), load_floats(out + i, count)), count);
  });
}

void to_f16(const float* x, std::uint16_t* out, std::int64_t n) {
  for_each_8(n, [&](std::int64_t i, std::int64_t count) {
    std::uint16_t eight[8];
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(eight),
        _mm256_cvtps_ph(load_floats(x + i, count), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    std::memcpy(out + i, eight, static_cast<std::size_t>(count) * sizeof(std::uint16_t));
  });
}

std::int64_t no_scratch(std::int64_t, std::int64_t) { return 0; }

}  // namespace
}  // namespace avx2

const RawKernels avx2_kernels = {
    .prepare = avx2::prepare,
    .multiply = {avx2::multiply_f32, avx2::multiply_f16, avx2::multiply_bf16, avx2::multiply_q4_0,
                 avx2::multiply_q4_1, avx2::multiply_q5_0, avx2::multiply_q5_1, avx2::multiply_q8_0,
                 avx2::multiply_q4_k, avx2::multiply_q5_k, avx2::multiply_q6_k},
    .scratch_bytes = avx2::no_scratch,
    .rms_norm = avx2::rms_norm,
    .silu_multiply = avx2::silu_multiply,
    .add = avx2::add,
    .softmax = avx2::softmax,
    .dot_f32 = avx2::dot_f32,
    .dot_f16 = avx2::dot_f16,
    .accumulate_f32 = avx2::accumulate_f32,
    .accumulate_f16 = avx2::accumulate_f16,
    .to_f16 = avx2::to_f16,
};

}  // namespace shoal::tensor
