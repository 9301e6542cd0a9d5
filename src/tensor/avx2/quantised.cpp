// SPDX-License-Identifier: Apache-2.0
// Products with quantised weights in AVX2.
//
// The one order of operations. A product is 8 sums: sum j runs over the units j, j + 8, j + 16, ... in turn,
// each adding   float(dot of codes) * (weight scale * activation scale)   and, where the format has one,
// minimum * activation sum   by fused multiply-adds; then lanes 4, 2, 1 apart are added. A group of 8
// units of a row is unpacked once and used for up to 4 tokens.
//
// Dots multiply unsigned by signed bytes and add pairs to 16 bits. They cannot saturate: codes below 64
// give at most 2 * 63 * 127, and signed codes are handed over as magnitude, their sign on the
// activation: at most 2 * 128 * 127 < 2^15.
#include "tensor/avx2/parts.h"
#include "tensor/avx2/unpack.h"

namespace shoal::tensor::avx2 {
namespace {

// Four vectors that hold in each 128-bit lane the four partial sums of a unit (vector v, lane l: unit
// 2 v + l) to the 8 sums in order.
inline __m256i sum_quarters(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
  const __m256i cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
  const __m256i sums = _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
  return _mm256_permutevar8x32_epi32(sums, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Two vectors of one unit each to one with a unit a 128-bit lane.
inline __m256i fold_pair(__m256i a, __m256i b) {
  return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

template <class F>
inline __m256i dot_pairs(__m256i q, __m256i x) {
  if constexpr (F::signed_codes)
    return _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(x, q));
  else
    return _mm256_maddubs_epi16(q, x);
}

// Dot products of the codes of 8 units.
template <class F>
inline __m256i dot_group(const __m256i* q, const std::uint8_t* x) {
  const auto pairs = [&](int i) { return dot_pairs<F>(q[i], load(x + 32 * i)); };
  const auto fours = [](__m256i v) { return _mm256_madd_epi16(v, _mm256_set1_epi16(1)); };
  if constexpr (F::unit == 16) {
    return sum_quarters(fours(pairs(0)), fours(pairs(1)), fours(pairs(2)), fours(pairs(3)));
  } else if constexpr (F::arrangement == Arrangement::halves) {
    const auto both = [&](int i) { return fours(_mm256_add_epi16(pairs(i), pairs(i + 2))); };
    return sum_quarters(both(0), both(1), both(4), both(5));
  } else {
    const auto folded = [&](int i) { return fold_pair(fours(pairs(i)), fours(pairs(i + 1))); };
    return sum_quarters(folded(0), folded(2), folded(4), folded(6));
  }
}

// One prepared row and where its arrays are.
struct Activations {
  const std::uint8_t *codes, *scale, *sum, *code_sum;
};

template <class F>
inline Activations activations(const MultiplyArguments& a, std::int64_t token) {
  const PreparedLayout layout = prepared_layout(a.columns);
  const std::uint8_t* x = a.x + token * a.prepared_bytes;
  return {x, x + layout.scale, x + layout.sum, x + (F::unit == 16 ? layout.code_sum16 : layout.code_sum32)};
}

template <class F>
inline __m256 unit_scales(const Activations& x, std::int64_t group) {
  if constexpr (F::unit == 16) {  // two units share an activation scale
    const __m256i four = _mm256_castsi128_si256(load_half(x.scale + 16 * group));
    return _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(four, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)));
  } else {
    return _mm256_castsi256_ps(load(x.scale + 32 * group));
  }
}

template <class F>
inline __m256 add_group(__m256 sums, const __m256i* q, __m256 scale, __m256 minimum, const Activations& x,
                        std::int64_t group) {
  __m256i dots = dot_group<F>(q, x.codes + F::vectors * 32 * group);
  if constexpr (F::offset_bits > 0)
    dots = _mm256_sub_epi32(dots, _mm256_slli_epi32(load(x.code_sum + 32 * group), F::offset_bits));
  const __m256 factor = _mm256_mul_ps(scale, unit_scales<F>(x, group));
  sums = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), factor, sums);
  if constexpr (F::has_minimum)
    sums = _mm256_fmadd_ps(minimum, _mm256_castsi256_ps(load(x.sum + 32 * group)), sums);
  return sums;
}

// Far enough ahead to cover the latency of memory at the speed of one core, and over page ends, where the
// hardware's own prefetching stops.
constexpr std::int64_t prefetch_bytes = 2048;

inline void prefetch_group(const std::uint8_t* p, int bytes) {
  for (int i = 0; i < bytes; i += 64)
    _mm_prefetch(reinterpret_cast<const char*>(p + prefetch_bytes + i), _MM_HINT_T0);
}

// The last, partial group of a row, read through a copy: nothing past the row is touched.
template <class F>
inline void unpack_partial(const std::uint8_t* p, std::int64_t units, __m256i* q, __m256& scale,
                           __m256& minimum) {
  alignas(32) std::uint8_t copy[F::group_bytes] = {};
  std::memcpy(copy, p, static_cast<std::size_t>(units * (F::group_bytes / 8)));
  F::unpack(copy, 0, q, scale, minimum);
}

template <class F, int tokens>
void multiply_rows(const MultiplyArguments& a, std::int64_t first_token) {
  const std::int64_t units = a.columns / F::unit, whole_groups = units / 8;
  Activations x[tokens];
  for (int t = 0; t < tokens; ++t) x[t] = activations<F>(a, first_token + t);
  for (std::int64_t row = a.row_begin; row < a.row_end; ++row) {
    const std::uint8_t* p = a.rows + row * a.row_bytes;
    __m256 sums[tokens];
    for (int t = 0; t < tokens; ++t) sums[t] = _mm256_setzero_ps();
    __m256i q[F::vectors];
    __m256 scale, minimum = _mm256_setzero_ps();
    for (std::int64_t group = 0; group < whole_groups; ++group) {
      prefetch_group(p + group * F::group_bytes, F::group_bytes);
      F::unpack(p, group, q, scale, minimum);
      for (int t = 0; t < tokens; ++t) sums[t] = add_group<F>(sums[t], q, scale, minimum, x[t], group);
    }
    if constexpr (F::may_end_in_group) {
      const std::int64_t rest = units % 8;
      if (rest > 0) unpack_partial<F>(p + whole_groups * F::group_bytes, rest, q, scale, minimum);
      for (int t = 0; t < tokens && rest > 0; ++t)
        sums[t] = add_group<F>(sums[t], q, scale, minimum, x[t], whole_groups);
    }
    for (int t = 0; t < tokens; ++t) a.y[(first_token + t) * a.y_stride + row] = sum_lanes(sums[t]);
  }
}

template <class F>
void multiply_quantised(const MultiplyArguments& a) {
  std::int64_t token = 0;
  for (; token + 4 <= a.tokens; token += 4) multiply_rows<F, 4>(a, token);
  if (a.tokens - token >= 2) {
    multiply_rows<F, 2>(a, token);
    token += 2;
  }
  if (token < a.tokens) multiply_rows<F, 1>(a, token);
}

}  // namespace

void multiply_q4_0(const MultiplyArguments& a) { multiply_quantised<Q4_0>(a); }
void multiply_q4_1(const MultiplyArguments& a) { multiply_quantised<Q4_1>(a); }
void multiply_q5_0(const MultiplyArguments& a) { multiply_quantised<Q5_0>(a); }
void multiply_q5_1(const MultiplyArguments& a) { multiply_quantised<Q5_1>(a); }
void multiply_q8_0(const MultiplyArguments& a) { multiply_quantised<Q8_0>(a); }
void multiply_q4_k(const MultiplyArguments& a) { multiply_quantised<Q4_K>(a); }
void multiply_q5_k(const MultiplyArguments& a) { multiply_quantised<Q5_K>(a); }
void multiply_q6_k(const MultiplyArguments& a) { multiply_quantised<Q6_K>(a); }

}  // namespace shoal::tensor::avx2
