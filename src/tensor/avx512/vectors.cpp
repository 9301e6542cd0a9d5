// SPDX-License-Identifier: Apache-2.0
// Norm, activation, softmax and attention rows in AVX-512, and the table of the set.
#include "tensor/avx512/lanes.h"
#include "tensor/avx512/parts.h"

namespace shoal::tensor {
namespace avx512 {
namespace {

// Calls step(position, mask) for each 16 elements; the last mask may be partial.
template <class Step>
inline void for_each_16(std::int64_t n, Step step) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) step(i, static_cast<__mmask16>(0xffff));
  if (i < n) step(i, first_lanes(n - i));
}

inline __m512 load_halves(const std::uint16_t* p, __mmask16 mask) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p));
}

// exp(x), relative error below 2e-7: x = n ln 2 + r with |r| <= ln 2 / 2, exp(r) by its Taylor polynomial of
// degree 7 (remainder r^8 / 8! < 6e-9), ln 2 in two parts so that r is exact enough. Infinities give
// infinity and 0; NaN stays NaN, because min and max return their second operand for it.
inline __m512 exponential(__m512 x) {
  x = _mm512_min_ps(_mm512_set1_ps(90.0f), x);
  x = _mm512_max_ps(_mm512_set1_ps(-110.0f), x);
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693145752f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(1.42860677e-6f), r);
  __m512 p = _mm512_set1_ps(1.0f / 5040);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 720));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

void rms_norm(const float* x, const float* weight, float epsilon, float* out, std::int64_t n) {
  __m512 squares = _mm512_setzero_ps();
  for_each_16(n, [&](std::int64_t i, __mmask16 mask) {
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
    squares = _mm512_fmadd_ps(v, v, squares);
  });
  const float mean = sum_lanes(squares) / static_cast<float>(n);
  const __m512 factor = _mm512_set1_ps(1.0f / __builtin_sqrtf(mean + epsilon));
  for_each_16(n, [&](std::int64_t i, __mmask16 mask) {
    const __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), factor);
    _mm512_mask_storeu_ps(out + i, mask, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(mask, weight + i)));
  });
}

void silu_multiply(float* gate, const float* up, std::int64_t n) {
  const __m512 one = _mm512_set1_ps(1.0f);
  for_each_16(n, [&](std::int64_t i, __mmask16 mask) {
    const __m512 v = _mm512_maskz_loadu_ps(mask, gate + i);
    const __m512 minus_v = _mm512_xor_ps(v, _mm512_set1_ps(-0.0f));
    const __m512 silu = _mm512_div_ps(v, _mm512_add_ps(one, exponential(minus_v)));
    _mm512_mask_storeu_ps(gate + i, mask, _mm512_mul_ps(silu, _mm512_maskz_loadu_ps(mask, up + i)));
  });
}

void add(float* x, const float* y, std::int64_t n) {
  for_each_16(n, [&](std::int64_t i, __mmask16 mask) {
    const __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, x + i), _mm512_maskz_loadu_ps(mask, y + i));
    _mm512_mask_storeu_ps(x + i, mask, sum);
  });
}

void softmax(float* x, std::int64_t n) {
  const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
  __m512 maxima = lowest;
  for_each_16(n, [&](std::int64_t i, __mmask16 mask) {
    maxima = _mm512_max_ps(maxima, _mm512_mask_loadu_ps(lowest, mask, x + i));
  });
  const __m512 maximum = _mm512_set1_ps(_mm512_reduce_max_ps(maxima));
  __m512 sums = _mm512_setzero_ps();
  for_each_16(n, [&](std::int64_t i, __mmask16 mask) {
    const __m512 e = exponential(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), maximum));
    sums = _mm512_mask_add_ps(sums, mask, sums, e);
    _mm512_mask_storeu_ps(x + i, mask, e);
  });
  const __m512 sum = _mm512_set1_ps(sum_lanes(sums));
  for_each_16(n, [&](std::int64_t i, __mmask16 mask) {
    _mm512_mask_storeu_ps(x + i, mask, _mm512_div_ps(_mm512_maskz_loadu_ps(mask, x + i), sum));
  });
}

float dot_f32(const float* q, const float* k, std::int64_t n) {
  __m512 sums = _mm512_setzero_ps();
  for_each_16(n, [&](std::int64_t i, __mmask16 mask) {
    sums = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, q + i), _mm512_maskz_loadu_ps(mask, k + i), sums);
  });
  return sum_lanes(sums);
}

float dot_f16(const float* q, const std::uint16_t* k, std::int64_t n) {
  __m512 sums = _mm512_setzero_ps();
  for_each_16(n, [&](std::int64_t i, __mmask16 mask) {
    sums = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, q + i), load_halves(k + i, mask), sums);
  });
  return sum_lanes(sums);
}

inline void accumulate(__m512 weight, __m512 v, float* out, __mmask16 mask) {
  _mm512_mask_storeu_ps(out, mask, _mm512_fmadd_ps(weight, v, _mm512_maskz_loadu_ps(mask, out)));
}

void accumulate_f32(float weight, const float* v, float* out, std::int64_t n) {
  const __m512 w = _mm512_set1_ps(weight);
  for_each_16(n, [&](std::int64_t i, __mmask16 mask) {
    accumulate(w, _mm512_maskz_loadu_ps(mask, v + i), out + i, mask);
  });
}

void accumulate_f16(float weight, const std::uint16_t* v, float* out, std::int64_t n) {
  const __m512 w = _mm512_set1_ps(weight);
  for_each_16(
      n, [&](std::int64_t i, __mmask16 mask) { accumulate(w, load_halves(v + i, mask), out + i, mask); });
}

void to_f16(const float* x, std::uint16_t* out, std::int64_t n) {
  for_each_16(n, [&](std::int64_t i, __mmask16 mask) {
    const __m256i halves =
        _mm512_cvtps_ph(_mm512_maskz_loadu_ps(mask, x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_mask_storeu_epi16(out + i, mask, halves);
  });
}

std::int64_t scratch_bytes(std::int64_t columns, std::int64_t tokens) {
  const std::int64_t floats = float_scratch_bytes(tokens),
                     quantised = quantised_scratch_bytes(columns, tokens);
  return floats > quantised ? floats : quantised;
}

}  // namespace
}  // namespace avx512

const RawKernels avx512_kernels = {
    .prepare = avx512::prepare,
    .multiply = {avx512::multiply_f32, avx512::multiply_f16, avx512::multiply_bf16, avx512::multiply_q4_0,
                 avx512::multiply_q4_1, avx512::multiply_q5_0, avx512::multiply_q5_1, avx512::multiply_q8_0,
                 avx512::multiply_q4_k, avx512::multiply_q5_k, avx512::multiply_q6_k},
    .scratch_bytes = avx512::scratch_bytes,
    .rms_norm = avx512::rms_norm,
    .silu_multiply = avx512::silu_multiply,
    .add = avx512::add,
    .softmax = avx512::softmax,
    .dot_f32 = avx512::dot_f32,
    .dot_f16 = avx512::dot_f16,
    .accumulate_f32 = avx512::accumulate_f32,
    .accumulate_f16 = avx512::accumulate_f16,
    .to_f16 = avx512::to_f16,
};

}  // namespace shoal::tensor
