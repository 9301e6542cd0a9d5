// SPDX-License-Identifier: Apache-2.0
// Preparation of activations, and products with F32, F16 and BF16 weights in AVX2.
//
// The one order of operations: 8 sums, sum j over the columns j, j + 8, ... by fused multiply-adds; then
// lanes 4, 2, 1 apart are added.
#include "tensor/avx2/lanes.h"
#include "tensor/avx2/parts.h"
#include "tensor/prepared.h"

namespace shoal::tensor::avx2 {
namespace {

// Up to 8 weights to floats, zeros after them.

struct F32 {
  static constexpr int bytes = 4;
  static inline __m256 load(const std::uint8_t* p, std::int64_t count) {
    return count == 8 ? _mm256_loadu_ps(reinterpret_cast<const float*>(p))
                      : _mm256_maskload_ps(reinterpret_cast<const float*>(p), first_lanes(count));
  }
};

struct F16 {
  static constexpr int bytes = 2;
  static inline __m256 load(const std::uint8_t* p, std::int64_t count) {
    return _mm256_cvtph_ps(load_words(p, count));
  }
};

struct BF16 {
  static constexpr int bytes = 2;
  static inline __m256 load(const std::uint8_t* p, std::int64_t count) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_words(p, count)), 16));
  }
};

template <class W, int rows, int tokens>
inline void add_columns(__m256 (&sums)[rows][tokens], const std::uint8_t* p, std::int64_t row_bytes,
                        const std::uint8_t* x, std::int64_t x_stride, std::int64_t count) {
  __m256 w[rows];
  for (int r = 0; r < rows; ++r) w[r] = W::load(p + r * row_bytes, count);
  for (int t = 0; t < tokens; ++t) {
    const __m256 activation = _mm256_castsi256_ps(load(x + t * x_stride));
    for (int r = 0; r < rows; ++r) sums[r][t] = _mm256_fmadd_ps(w[r], activation, sums[r][t]);
  }
}

template <class W, int rows, int tokens>
inline void multiply_tile(const MultiplyArguments& a, std::int64_t row, std::int64_t token) {
  const std::uint8_t* p = a.rows + row * a.row_bytes;
  const std::uint8_t* x = a.x + token * a.prepared_bytes;
  __m256 sums[rows][tokens];
  for (int r = 0; r < rows; ++r)
    for (int t = 0; t < tokens; ++t) sums[r][t] = _mm256_setzero_ps();
  for (std::int64_t left = a.columns / 8; left > 0; --left, p += 8 * W::bytes, x += 32)
    add_columns<W>(sums, p, a.row_bytes, x, a.prepared_bytes, 8);
  if (a.columns % 8 != 0) add_columns<W>(sums, p, a.row_bytes, x, a.prepared_bytes, a.columns % 8);
  for (int r = 0; r < rows; ++r)
    for (int t = 0; t < tokens; ++t) a.y[(token + t) * a.y_stride + row + r] = sum_lanes(sums[r][t]);
}

template <class W, int rows>
void multiply_rows(const MultiplyArguments& a, std::int64_t row) {
  std::int64_t token = 0;
  for (; token + 2 <= a.tokens; token += 2) multiply_tile<W, rows, 2>(a, row, token);
  for (; token < a.tokens; ++token) multiply_tile<W, rows, 1>(a, row, token);
}

template <class W>
void multiply_floats(const MultiplyArguments& a) {
  std::int64_t row = a.row_begin;
  for (; row + 4 <= a.row_end; row += 4) multiply_rows<W, 4>(a, row);
  for (; row < a.row_end; ++row) multiply_rows<W, 1>(a, row);
}

inline std::int32_t sum_of(__m256i v) {
  const __m128i v4 = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i v2 = _mm_add_epi32(v4, _mm_srli_si128(v4, 8));
  return _mm_cvtsi128_si32(_mm_add_epi32(v2, _mm_srli_si128(v2, 4)));
}

inline std::uint32_t max_of(__m256i v) {
  const __m128i v4 = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i v2 = _mm_max_epu32(v4, _mm_srli_si128(v4, 8));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_max_epu32(v2, _mm_srli_si128(v2, 4))));
}

constexpr float smallest_maximum = 0x1p-119f;  // below it 127 / maximum overflows; such a unit is zero

// Codes of 16 floats; returns their sum.
inline std::int32_t encode_half(const float* x, __m256 inverse, __m256i keep, std::uint8_t* codes) {
  const auto encode = [&](const float* p) {
    return _mm256_and_si256(_mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(p), inverse)), keep);
  };
  const __m256i a = encode(x), b = encode(x + 8);
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), bytes);
  return sum_of(_mm256_add_epi32(a, b));
}

// A unit of 32 floats: its codes (16 of each half) and its entry in the arrays.
inline void prepare_unit(const float* x, std::int64_t unit, const PreparedLayout& layout, std::uint8_t* out,
                         std::uint8_t* first_codes, std::uint8_t* second_codes) {
  __m256i magnitudes = _mm256_setzero_si256();  // compared as integers: NaN and infinity are the largest
  for (int i = 0; i < 32; i += 8)
    magnitudes = _mm256_max_epu32(magnitudes, _mm256_and_si256(load(x + i), _mm256_set1_epi32(0x7fffffff)));
  const std::uint32_t largest = max_of(magnitudes);
  float maximum;
  std::memcpy(&maximum, &largest, sizeof maximum);
  const bool finite = largest < 0x7f800000u, zero = maximum < smallest_maximum;
  const __m256 inverse = _mm256_set1_ps(finite && !zero ? 127.0f / maximum : 0.0f);
  const __m256i keep = _mm256_set1_epi32(finite ? -1 : 0);
  const std::int32_t half_sums[2] = {encode_half(x, inverse, keep, first_codes),
                                     encode_half(x + 16, inverse, keep, second_codes)};
  const std::int32_t code_sum = half_sums[0] + half_sums[1];
  const float scale = !finite ? __builtin_nanf("") : zero ? 0.0f : maximum / 127.0f;
  const float sum = scale * static_cast<float>(code_sum);
  std::memcpy(out + layout.scale + 4 * unit, &scale, sizeof scale);
  std::memcpy(out + layout.sum + 4 * unit, &sum, sizeof sum);
  std::memcpy(out + layout.code_sum32 + 4 * unit, &code_sum, sizeof code_sum);
  std::memcpy(out + layout.code_sum16 + 8 * unit, half_sums, sizeof half_sums);
}

}  // namespace

void prepare(int format, const float* x, std::int64_t columns, std::uint8_t* out) {
  const Arrangement arrangement = arrangement_of(format);
  if (arrangement == Arrangement::floats) {
    std::memcpy(out, x, static_cast<std::size_t>(columns) * sizeof(float));
    std::memset(out + 4 * columns, 0, static_cast<std::size_t>(padded_floats(columns) - columns) * 4);
    return;
  }
  const PreparedLayout layout = prepared_layout(columns);
  if (columns % 512 != 0) std::memset(out, 0, static_cast<std::size_t>(layout.bytes));
  for (std::int64_t unit = 0; unit < columns / 32; ++unit) {
    const bool halves = arrangement == Arrangement::halves;
    std::uint8_t* codes = out + (halves ? halves_position(32 * unit) : 32 * unit);
    prepare_unit(x + 32 * unit, unit, layout, out, codes, codes + (halves ? 64 : 16));
  }
}

void multiply_f32(const MultiplyArguments& a) { multiply_floats<F32>(a); }
void multiply_f16(const MultiplyArguments& a) { multiply_floats<F16>(a); }
void multiply_bf16(const MultiplyArguments& a) { multiply_floats<BF16>(a); }

}  // namespace shoal::tensor::avx2
