// SPDX-License-Identifier: Apache-2.0
// Products with quantised weights in AVX-512 VNNI.
//
// The one order of operations. A product is 16 sums: sum j runs over the units j, j + 16, j + 32, ... in
// turn, each adding   float(dot of codes) * (weight scale * activation scale)   and, where the format has
// one, minimum * activation sum   by fused multiply-adds; then lanes 8, 4, 2, 1 apart are added. Two
// arrangements of the work keep it:
//
//   by rows    lanes are units: a group of 16 units of one row against up to 4 tokens. One pass over
//              the weights in memory order: a single token runs at the speed of memory.
//   by tiles   lanes are 16 tokens: 8 rows are unpacked to scratch, tokens are transposed there, and the
//              dot products need no shuffling. A large batch runs at the speed of the multipliers.
#include "tensor/avx512/parts.h"
#include "tensor/avx512/unpack.h"

namespace shoal::tensor::avx512 {
namespace {

// ---- by rows ----

// Four vectors that hold in each 128-bit lane the four partial sums of a unit (vector v, lane l: unit
// 4 v + l) to the 16 sums in order.
inline __m512i sum_quarters(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
  const __m512i sums = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, sums);
}

// Two vectors with a unit in each 256-bit half (a: 0, 1; b: 2, 3) to one with a unit a 128-bit lane.
inline __m512i fold_pairs(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

// Dot products of the codes of the first 4 * quarters of 16 units, zeros after them.
template <class F, int quarters>
inline __m512i dot_group(const __m512i* q, const std::uint8_t* x) {
  constexpr int vectors = F::vectors / 4;  // of a quarter
  __m512i sums[4] = {};
  for (int quarter = 0; quarter < quarters; ++quarter) {
    const auto dot = [&](__m512i sum, int i) {
      return _mm512_dpbusd_epi32(sum, q[vectors * quarter + i], load(x + 64 * (vectors * quarter + i)));
    };
    const __m512i zero = _mm512_setzero_si512();
    if constexpr (F::unit == 16)
      sums[quarter] = dot(zero, 0);
    else if constexpr (F::arrangement == Arrangement::halves)
      sums[quarter] = dot(dot(zero, 0), 1);
    else
      sums[quarter] = fold_pairs(dot(zero, 0), dot(zero, 1));
  }
  return sum_quarters(sums[0], sums[1], sums[2], sums[3]);
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
inline __m512 unit_scales(const Activations& x, std::int64_t group) {
  if constexpr (F::unit == 16) {  // two units share an activation scale
    const __m512 eight =
        _mm512_castps256_ps512(_mm256_loadu_ps(reinterpret_cast<const float*>(x.scale + 32 * group)));
    return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7), eight);
  } else {
    return _mm512_loadu_ps(x.scale + 64 * group);
  }
}

template <class F, int quarters = 4>
inline __m512 add_group(__m512 sums, const __m512i* q, __m512 scale, __m512 minimum, const Activations& x,
                        std::int64_t group) {
  __m512i dots = dot_group<F, quarters>(q, x.codes + F::vectors * 64 * group);
  if constexpr (F::offset_bits > 0)
    dots = _mm512_sub_epi32(dots, _mm512_slli_epi32(load(x.code_sum + 64 * group), F::offset_bits));
  const __m512 factor = _mm512_mul_ps(scale, unit_scales<F>(x, group));
  sums = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), factor, sums);
  if constexpr (F::has_minimum) sums = _mm512_fmadd_ps(minimum, _mm512_loadu_ps(x.sum + 64 * group), sums);
  return sums;
}

// A row as groups of 16 units. The last group may be partial: its lanes past the row are zeroed, and it
// is read through a copy when it would reach past the matrix.
template <class F>
struct Groups {
  explicit Groups(const MultiplyArguments& a)
      : count((a.columns / F::unit + 15) / 16),
        last_mask(first_lanes((a.columns / F::unit - 1) % 16 + 1)),
        last_bytes(a.row_bytes - (count - 1) * F::group_bytes),
        end(a.rows + a.row_bytes * a.row_count) {}

  template <int quarters>
  inline void unpack_last(const std::uint8_t* p, __m512i* q, __m512& scale, __m512& minimum) const {
    alignas(64) std::uint8_t copy[F::group_bytes];
    if (end - p < F::group_bytes) {
      std::memset(copy, 0, sizeof copy);
      std::memcpy(copy, p, static_cast<std::size_t>(last_bytes));
      p = copy;
    }
    F::template unpack<quarters>(p, q, scale, minimum);
    scale = _mm512_maskz_mov_ps(last_mask, scale);
    if constexpr (F::has_minimum) minimum = _mm512_maskz_mov_ps(last_mask, minimum);
  }

  std::int64_t count;
  __mmask16 last_mask;
  std::int64_t last_bytes;
  const std::uint8_t* end;
};

// Far enough ahead to cover the latency of memory at the speed of one core, and over page ends, where the
// hardware's own prefetching stops.
constexpr std::int64_t prefetch_bytes = 2048;

inline void prefetch_group(const std::uint8_t* p, int bytes) {
  for (int i = 0; i < bytes; i += 64)
    _mm_prefetch(reinterpret_cast<const char*>(p + prefetch_bytes + i), _MM_HINT_T0);
}

// `last_quarters`: 1 when the last group has at most 4 units, which then costs a quarter of a whole one.
template <class F, int tokens, int last_quarters>
void multiply_rows(const MultiplyArguments& a, const Groups<F>& groups, std::int64_t first_token) {
  Activations x[tokens];
  for (int t = 0; t < tokens; ++t) x[t] = activations<F>(a, first_token + t);
  for (std::int64_t row = a.row_begin; row < a.row_end; ++row) {
    const std::uint8_t* p = a.rows + row * a.row_bytes;
    __m512 sums[tokens];
    for (int t = 0; t < tokens; ++t) sums[t] = _mm512_setzero_ps();
    __m512i q[F::vectors];
    __m512 scale, minimum = _mm512_setzero_ps();
    for (std::int64_t group = 0; group < groups.count - 1; ++group, p += F::group_bytes) {
      prefetch_group(p, F::group_bytes);
      F::unpack(p, q, scale, minimum);
      for (int t = 0; t < tokens; ++t) sums[t] = add_group<F>(sums[t], q, scale, minimum, x[t], group);
    }
    prefetch_group(p, F::group_bytes * last_quarters / 4);
    groups.template unpack_last<last_quarters>(p, q, scale, minimum);
    for (int t = 0; t < tokens; ++t)
      sums[t] = add_group<F, last_quarters>(sums[t], q, scale, minimum, x[t], groups.count - 1);
    for (int t = 0; t < tokens; ++t) a.y[(first_token + t) * a.y_stride + row] = sum_lanes(sums[t]);
  }
}

template <class F, int tokens>
void multiply_rows(const MultiplyArguments& a, std::int64_t first_token) {
  const Groups<F> groups(a);
  if (groups.last_mask <= 15) return multiply_rows<F, tokens, 1>(a, groups, first_token);
  multiply_rows<F, tokens, 4>(a, groups, first_token);
}

template <class F>
void multiply_by_rows(const MultiplyArguments& a, std::int64_t token, std::int64_t end) {
  for (; token + 4 <= end; token += 4) multiply_rows<F, 4>(a, token);
  if (end - token >= 2) {
    multiply_rows<F, 2>(a, token);
    token += 2;
  }
  if (token < end) multiply_rows<F, 1>(a, token);
}

// ---- by tiles ----

constexpr int tile_tokens = 16;
constexpr int tile_rows = 8;
// Fewer tokens than this are faster by rows, although a tile would leave lanes idle for nothing else.
constexpr std::int64_t fewest_tile_tokens = 6;
// Transposed tokens that are kept at a time: half of a typical second-level cache.
constexpr std::int64_t token_scratch_bytes = 1 << 20;

// What a tile reads of one unit of 16 tokens: for each four codes the tokens side by side, then a lane a
// token of the scale, and of the activation sum (formats with a minimum) and the offset's part of the dot.
template <class F>
struct UnitTokens {
  __m512i codes[F::unit / 4];
  __m512 scale;
  __m512 sum;
  __m512i start;
};

// ... and of one unit of 8 rows. Everything is at a fixed distance from one pointer, and both kinds of
// records lie in the order of use: units 0, 16, 32, ..., then 1, 17, ...
template <class F>
struct UnitRows {
  alignas(64) std::uint8_t codes[tile_rows][F::unit];
  float scale[tile_rows];
  float minimum[tile_rows];
};

using WidestUnit = Shape<32, Arrangement::natural, 7, false>;
using FinestUnit = Shape<16, Arrangement::natural, 5, false>;
constexpr std::int64_t token_bytes_per_column = sizeof(UnitTokens<FinestUnit>) / 16;
constexpr std::int64_t row_bytes_per_column = sizeof(UnitRows<FinestUnit>) / 16;
static_assert(token_bytes_per_column * 32 >= std::int64_t{sizeof(UnitTokens<WidestUnit>)});
static_assert(row_bytes_per_column * 32 >= std::int64_t{sizeof(UnitRows<WidestUnit>)});

inline std::int64_t token_groups_at_a_time(std::int64_t columns, std::int64_t tokens) {
  const std::int64_t fit = token_scratch_bytes / (columns * token_bytes_per_column);
  const std::int64_t wanted = (tokens + tile_tokens - 1) / tile_tokens;
  return fit < 1 ? 1 : fit < wanted ? fit : wanted;
}

// Where the codes of a unit begin in a prepared row, and where its `word`-th four are from there.
template <class F>
inline std::int64_t code_position(std::int64_t unit) {
  return F::arrangement == Arrangement::halves ? unit / 4 * 128 + unit % 4 * 16 : unit * F::unit;
}
template <class F>
constexpr int word_position(int word) {
  return F::arrangement == Arrangement::halves && word >= 4 ? 64 + 4 * (word - 4) : 4 * word;
}

// 16 tokens (the last one repeated where there are fewer) as records.
template <class F>
void transpose_tokens(const MultiplyArguments& a, std::int64_t first_token, std::int64_t count,
                      UnitTokens<F>* record) {
  alignas(64) std::int32_t offsets[tile_tokens];
  for (std::int64_t t = 0; t < tile_tokens; ++t)
    offsets[t] = static_cast<std::int32_t>((t < count ? t : count - 1) * a.prepared_bytes);
  const __m512i index = _mm512_load_si512(offsets);
  const auto gather = [index](const std::uint8_t* p) { return _mm512_i32gather_epi32(index, p, 1); };
  const Activations x = activations<F>(a, first_token);
  const std::int64_t units = a.columns / F::unit;
  for (std::int64_t j = 0; j < 16; ++j)
    for (std::int64_t unit = j; unit < units; unit += 16, ++record) {
      const std::uint8_t* codes = x.codes + code_position<F>(unit);
      for (int word = 0; word < F::unit / 4; ++word)
        record->codes[word] = gather(codes + word_position<F>(word));
      record->scale = _mm512_castsi512_ps(gather(x.scale + 4 * (unit * F::unit / 32)));
      record->sum = _mm512_castsi512_ps(gather(x.sum + 4 * (unit * F::unit / 32)));
      const __m512i offset = _mm512_slli_epi32(gather(x.code_sum + 4 * unit), F::offset_bits);
      record->start =
          F::offset_bits == 0 ? _mm512_setzero_si512() : _mm512_sub_epi32(_mm512_setzero_si512(), offset);
    }
}

// Each pair of vectors of the `halves` arrangement (first halves of four units, second halves) to plain
// order.
inline void join_halves(__m512i* q) {
  for (int i = 0; i < 8; i += 2) {
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    const __m512i a = _mm512_permutex2var_epi64(q[i], first, q[i + 1]);
    q[i + 1] = _mm512_permutex2var_epi64(q[i], second, q[i + 1]);
    q[i] = a;
  }
}

// Row r of a tile to its place in the records.
template <class F>
void unpack_row(const Groups<F>& groups, const std::uint8_t* p, std::int64_t r, std::int64_t units,
                UnitRows<F>* records) {
  const std::int64_t whole = units / 16, rest = units % 16;
  __m512i q[F::vectors];
  __m512 scale, minimum = _mm512_setzero_ps();
  for (std::int64_t group = 0; group < groups.count; ++group, p += F::group_bytes) {
    if (group + 1 < groups.count)
      F::unpack(p, q, scale, minimum);
    else
      groups.template unpack_last<4>(p, q, scale, minimum);
    if constexpr (F::arrangement == Arrangement::halves) join_halves(q);
    alignas(64) std::uint8_t codes[16][F::unit];
    alignas(64) float scales[16], minima[16];
    for (int i = 0; i < F::vectors; ++i) _mm512_store_si512(&codes[0][0] + 64 * i, q[i]);
    _mm512_store_ps(scales, scale);
    _mm512_store_ps(minima, minimum);
    const std::int64_t in_group = group < whole ? 16 : rest;
    UnitRows<F>* record = records + group;
    for (std::int64_t j = 0; j < in_group; ++j, record += whole + (j <= rest)) {
      std::memcpy(record->codes[r], codes[j], F::unit);
      record->scale[r] = scales[j];
      if constexpr (F::has_minimum) record->minimum[r] = minima[j];
    }
  }
}

// Fetches the rows of the next tile to the second-level cache while this one is multiplied.
struct Fetcher {
  const std::uint8_t* next;
  std::int64_t lines_a_step;
  inline void step() {
    for (std::int64_t i = 0; i < lines_a_step; ++i, next += 64)
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
  }
};

// Adds one unit to the sums of `rows` rows by 16 tokens.
template <class F, int rows>
inline void add_unit(__m512* sums, const UnitTokens<F>& x, const UnitRows<F>& w) {
  __m512i dots[rows];
  for (int r = 0; r < rows; ++r) dots[r] = F::offset_bits > 0 ? x.start : _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int word = 0; word < F::unit / 4; ++word) {
    const __m512i four = x.codes[word];
    for (int r = 0; r < rows; ++r) {
      const __m512i weights = _mm512_set1_epi32(static_cast<int>(load_u32(&w.codes[r][4 * word])));
      dots[r] = _mm512_dpbusd_epi32(dots[r], weights, four);
    }
  }
  for (int r = 0; r < rows; ++r) {
    const __m512 factor = _mm512_mul_ps(_mm512_set1_ps(w.scale[r]), x.scale);
    sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[r]), factor, sums[r]);
    if constexpr (F::has_minimum) sums[r] = _mm512_fmadd_ps(_mm512_set1_ps(w.minimum[r]), x.sum, sums[r]);
  }
}

// products[r]: row r against 16 tokens.
template <class F, int rows>
void multiply_tile(const UnitTokens<F>* x, const UnitRows<F>* w, std::int64_t units, Fetcher& fetcher,
                   __m512* products) {
  __m512 sums[16][rows];
  for (std::int64_t j = 0; j < 16; ++j) {
    __m512 sum[rows];
    for (int r = 0; r < rows; ++r) sum[r] = _mm512_setzero_ps();
    fetcher.step();
    for (std::int64_t unit = j; unit < units; unit += 16, ++x, ++w) add_unit<F, rows>(sum, *x, *w);
    for (int r = 0; r < rows; ++r) sums[j][r] = sum[r];
  }
  for (int distance = 8; distance > 0; distance /= 2)  // the order of sum_lanes
    for (int j = 0; j < distance; ++j)
      for (int r = 0; r < rows; ++r) sums[j][r] = _mm512_add_ps(sums[j][r], sums[j + distance][r]);
  for (int r = 0; r < rows; ++r) products[r] = sums[0][r];
}

// All rows against tokens [first_token, end_token), which fit the scratch. A tile at the end may have
// fewer rows: the others hold what the scratch held, and their products are dropped.
template <class F>
void multiply_token_groups(const MultiplyArguments& a, std::int64_t first_token, std::int64_t end_token) {
  const Groups<F> groups(a);
  const std::int64_t units = a.columns / F::unit, token_groups = (end_token - first_token + 15) / tile_tokens;
  auto* w = reinterpret_cast<UnitRows<F>*>(a.scratch);
  auto* x = reinterpret_cast<UnitTokens<F>*>(a.scratch + row_bytes_per_column * padded_floats(a.columns));
  for (std::int64_t i = 0; i < token_groups; ++i)
    transpose_tokens<F>(a, first_token + i * tile_tokens, end_token - first_token - i * tile_tokens,
                        x + i * units);
  for (std::int64_t row = a.row_begin; row < a.row_end; row += tile_rows) {
    const std::int64_t rows = a.row_end - row < tile_rows ? a.row_end - row : tile_rows;
    for (std::int64_t r = 0; r < rows; ++r)
      unpack_row<F>(groups, a.rows + (row + r) * a.row_bytes, r, units, w);
    Fetcher fetcher = {a.rows + (row + tile_rows) * a.row_bytes,
                       tile_rows * a.row_bytes / (64 * 16 * token_groups) + 1};
    for (std::int64_t i = 0; i < token_groups; ++i) {
      alignas(64) float products[tile_rows][tile_tokens];
      auto* lanes = reinterpret_cast<__m512*>(products);
      if (rows <= tile_rows / 2)
        multiply_tile<F, tile_rows / 2>(x + i * units, w, units, fetcher, lanes);
      else
        multiply_tile<F, tile_rows>(x + i * units, w, units, fetcher, lanes);
      for (std::int64_t t = first_token + i * tile_tokens, lane = 0; t < end_token && lane < tile_tokens;
           ++t, ++lane)
        for (std::int64_t r = 0; r < rows; ++r) a.y[t * a.y_stride + row + r] = products[r][lane];
    }
  }
}

template <class F>
void multiply_quantised(const MultiplyArguments& a) {
  const std::int64_t rest = a.tokens % tile_tokens;
  const std::int64_t tiled = a.tokens - (rest < fewest_tile_tokens ? rest : 0);
  const std::int64_t step = token_groups_at_a_time(a.columns, a.tokens) * tile_tokens;
  for (std::int64_t t = 0; t < tiled; t += step)
    multiply_token_groups<F>(a, t, t + step < tiled ? t + step : tiled);
  multiply_by_rows<F>(a, tiled, a.tokens);
}

}  // namespace

std::int64_t quantised_scratch_bytes(std::int64_t columns, std::int64_t tokens) {
  if (tokens < fewest_tile_tokens) return 0;
  return row_bytes_per_column * padded_floats(columns) +
         token_groups_at_a_time(columns, tokens) * columns * token_bytes_per_column;
}

void multiply_q4_0(const MultiplyArguments& a) { multiply_quantised<Q4_0>(a); }
void multiply_q4_1(const MultiplyArguments& a) { multiply_quantised<Q4_1>(a); }
void multiply_q5_0(const MultiplyArguments& a) { multiply_quantised<Q5_0>(a); }
void multiply_q5_1(const MultiplyArguments& a) { multiply_quantised<Q5_1>(a); }
void multiply_q8_0(const MultiplyArguments& a) { multiply_quantised<Q8_0>(a); }
void multiply_q4_k(const MultiplyArguments& a) { multiply_quantised<Q4_K>(a); }
void multiply_q5_k(const MultiplyArguments& a) { multiply_quantised<Q5_K>(a); }
void multiply_q6_k(const MultiplyArguments& a) { multiply_quantised<Q6_K>(a); }

}  // namespace shoal::tensor::avx512
