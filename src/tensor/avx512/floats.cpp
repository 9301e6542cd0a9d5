// SPDX-License-Identifier: Apache-2.0
// Preparation of activations, and products with F32, F16 and BF16 weights in AVX-512.
//
// The one order of operations: 16 sums, sum j over the columns j, j + 16, ... by fused multiply-adds; then
// lanes 8, 4, 2, 1 apart are added.
#include "tensor/avx512/lanes.h"
#include "tensor/avx512/parts.h"
#include "tensor/prepared.h"

namespace shoal::tensor::avx512 {
namespace {

// 16 weights to floats; `mask` reads only the first lanes and gives zeros for the others.

struct F32 {
  static constexpr int bytes = 4;
  static inline __m512 load(const std::uint8_t* p) { return _mm512_loadu_ps(p); }
  static inline __m512 load(const std::uint8_t* p, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, p); }
};

struct F16 {
  static constexpr int bytes = 2;
  static inline __m512 load(const std::uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static inline __m512 load(const std::uint8_t* p, __mmask16 mask) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p));
  }
};

struct BF16 {
  static constexpr int bytes = 2;
  static inline __m512 widen(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static inline __m512 load(const std::uint8_t* p) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static inline __m512 load(const std::uint8_t* p, __mmask16 mask) {
    return widen(_mm256_maskz_loadu_epi16(mask, p));
  }
};

// Adds 16 columns of `rows` weights times `tokens` activations.
template <int rows, int tokens>
inline void add_columns(__m512 (&sums)[rows][tokens], const __m512 (&w)[rows], const std::uint8_t* x,
                        std::int64_t x_stride) {
  for (int t = 0; t < tokens; ++t) {
    const __m512 activation = _mm512_loadu_ps(x + t * x_stride);
    for (int r = 0; r < rows; ++r) sums[r][t] = _mm512_fmadd_ps(w[r], activation, sums[r][t]);
  }
}

// Columns [begin, end) of a product; sums are kept between the parts, so that cutting changes no bit.
struct ColumnPart {
  std::int64_t begin, end;
};

template <class W, int rows, int tokens>
inline void add_part(const MultiplyArguments& a, std::int64_t row, std::int64_t token, ColumnPart part,
                     __m512 (&sums)[rows][tokens]) {
  const std::uint8_t* p = a.rows + row * a.row_bytes + part.begin * W::bytes;
  const std::uint8_t* x = a.x + token * a.prepared_bytes + part.begin * 4;
  __m512 w[rows];
  for (std::int64_t left = (part.end - part.begin) / 16; left > 0; --left, p += 16 * W::bytes, x += 64) {
    for (int r = 0; r < rows; ++r) w[r] = W::load(p + r * a.row_bytes);
    add_columns(sums, w, x, a.prepared_bytes);
  }
  if ((part.end - part.begin) % 16 != 0) {
    const __mmask16 mask = first_lanes((part.end - part.begin) % 16);
    for (int r = 0; r < rows; ++r) w[r] = W::load(p + r * a.row_bytes, mask);
    add_columns(sums, w, x, a.prepared_bytes);
  }
}

template <int rows, int tokens>
inline void store_products(const MultiplyArguments& a, std::int64_t row, std::int64_t token,
                           const __m512 (&sums)[rows][tokens]) {
  for (int r = 0; r < rows; ++r)
    for (int t = 0; t < tokens; ++t) a.y[(token + t) * a.y_stride + row + r] = sum_lanes(sums[r][t]);
}

// One token: whole rows, read once.
template <class W, int rows>
void multiply_rows(const MultiplyArguments& a, std::int64_t row, std::int64_t token) {
  __m512 sums[rows][1];
  for (int r = 0; r < rows; ++r) sums[r][0] = _mm512_setzero_ps();
  add_part<W>(a, row, token, {0, a.columns}, sums);
  store_products(a, row, token, sums);
}

// Batches in blocks: the weights of a block (32 rows x 512 columns) stay in the second-level cache for all
// its tokens, the activations of 4 tokens in the first; sums wait in scratch for the next columns.
constexpr std::int64_t block_rows = 32, block_columns = 512, block_tokens = 64;
constexpr std::int64_t fewest_block_tokens = 4;
constexpr std::int64_t block_scratch_bytes = block_rows * block_tokens * 64;

template <class W, int rows, int tokens>
void multiply_tile(const MultiplyArguments& a, std::int64_t row, std::int64_t token, ColumnPart part,
                   __m512* kept) {
  __m512 sums[rows][tokens];
  for (int r = 0; r < rows; ++r)
    for (int t = 0; t < tokens; ++t)
      sums[r][t] = part.begin == 0 ? _mm512_setzero_ps() : kept[r * block_tokens + t];
  add_part<W>(a, row, token, part, sums);
  if (part.end == a.columns) return store_products(a, row, token, sums);
  for (int r = 0; r < rows; ++r)
    for (int t = 0; t < tokens; ++t) kept[r * block_tokens + t] = sums[r][t];
}

template <class W, int tokens>
void multiply_row_block(const MultiplyArguments& a, std::int64_t row, std::int64_t row_end,
                        std::int64_t token, ColumnPart part, __m512* kept) {
  for (; row + 4 <= row_end; row += 4, kept += 4 * block_tokens)
    multiply_tile<W, 4, tokens>(a, row, token, part, kept);
  for (; row < row_end; ++row, kept += block_tokens) multiply_tile<W, 1, tokens>(a, row, token, part, kept);
}

template <class W>
void multiply_block(const MultiplyArguments& a, std::int64_t row, std::int64_t row_end,
                    std::int64_t first_token, std::int64_t end_token) {
  for (std::int64_t begin = 0; begin < a.columns; begin += block_columns) {
    const ColumnPart part = {begin, begin + block_columns < a.columns ? begin + block_columns : a.columns};
    auto* kept = reinterpret_cast<__m512*>(a.scratch);
    std::int64_t token = first_token;
    for (; token + 4 <= end_token; token += 4, kept += 4)
      multiply_row_block<W, 4>(a, row, row_end, token, part, kept);
    for (; token < end_token; ++token, ++kept) multiply_row_block<W, 1>(a, row, row_end, token, part, kept);
  }
}

template <class W>
void multiply_floats(const MultiplyArguments& a) {
  if (a.tokens < fewest_block_tokens) {
    for (std::int64_t token = 0; token < a.tokens; ++token) {
      std::int64_t row = a.row_begin;
      for (; row + 4 <= a.row_end; row += 4) multiply_rows<W, 4>(a, row, token);
      for (; row < a.row_end; ++row) multiply_rows<W, 1>(a, row, token);
    }
    return;
  }
  for (std::int64_t token = 0; token < a.tokens; token += block_tokens)
    for (std::int64_t row = a.row_begin; row < a.row_end; row += block_rows)
      multiply_block<W>(a, row, row + block_rows < a.row_end ? row + block_rows : a.row_end, token,
                        token + block_tokens < a.tokens ? token + block_tokens : a.tokens);
}

constexpr float smallest_maximum = 0x1p-119f;  // below it 127 / maximum overflows; such a unit is zero

// A unit of 32 floats: its codes (16 of each half) and its entry in the arrays.
inline void prepare_unit(const float* x, std::int64_t unit, const PreparedLayout& layout, std::uint8_t* out,
                         std::uint8_t* first_codes, std::uint8_t* second_codes) {
  const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
  // Magnitudes compared as integers: NaN and infinity are the largest of all.
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  const std::uint32_t largest =
      _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(a), magnitude),
                                               _mm512_and_si512(_mm512_castps_si512(b), magnitude)));
  float maximum;
  std::memcpy(&maximum, &largest, sizeof maximum);
  const bool finite = largest < 0x7f800000u, zero = maximum < smallest_maximum;
  const __m512 inverse = _mm512_set1_ps(finite && !zero ? 127.0f / maximum : 0.0f);
  const __mmask16 keep = finite ? 0xffff : 0;
  const __m512i a_codes = _mm512_maskz_cvtps_epi32(keep, _mm512_mul_ps(a, inverse));
  const __m512i b_codes = _mm512_maskz_cvtps_epi32(keep, _mm512_mul_ps(b, inverse));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(first_codes), _mm512_cvtepi32_epi8(a_codes));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(second_codes), _mm512_cvtepi32_epi8(b_codes));
  const std::int32_t half_sums[2] = {_mm512_reduce_add_epi32(a_codes), _mm512_reduce_add_epi32(b_codes)};
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

std::int64_t float_scratch_bytes(std::int64_t tokens) {
  return tokens < fewest_block_tokens ? 0 : block_scratch_bytes;
}

void multiply_f32(const MultiplyArguments& a) { multiply_floats<F32>(a); }
void multiply_f16(const MultiplyArguments& a) { multiply_floats<F16>(a); }
void multiply_bf16(const MultiplyArguments& a) { multiply_floats<BF16>(a); }

}  // namespace shoal::tensor::avx512
