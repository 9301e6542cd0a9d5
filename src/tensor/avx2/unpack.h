// SPDX-License-Identifier: Apache-2.0
// Weight blocks to registers. Each format unpacks a group of 8 units (a unit is what shares a scale: 32
// elements, 16 in Q6_K) into codes of 8 bits, in the order of the prepared activations, and a lane per
// unit of the float scale and minimum:   w = scale * (code - 2^offset_bits) + minimum.
//
// unpack(row, group) reads the group's own bytes only. Lanes of units past the end of a row are garbage
// that the caller masks.
#pragma once

#include "tensor/avx2/lanes.h"
#include "tensor/blocks.h"
#include "tensor/prepared.h"

namespace shoal::tensor::avx2 {
namespace {

template <int unit_, Arrangement arrangement_, int offset_bits_, bool has_minimum_>
struct Shape {
  static constexpr int unit = unit_;
  static constexpr Arrangement arrangement = arrangement_;
  static constexpr int offset_bits = offset_bits_;  // 0: codes have no offset
  static constexpr bool has_minimum = has_minimum_;
  static constexpr bool signed_codes = false;
  static constexpr bool may_end_in_group = true;  // false: 8 units are a block or half of one
  static constexpr int vectors = 8 * unit / 32;   // of 32 codes a group
};

// 8 halves in the low words of 32-bit lanes to floats.
inline __m256 low_halves(__m256i words) {
  const __m256i low = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}
inline __m256 high_halves(__m256i words) { return low_halves(_mm256_srli_epi32(words, 16)); }

// The first four bytes of 8 blocks.
template <int block_bytes>
inline __m256i gather_heads(const std::uint8_t* p) {
  const __m256i index = _mm256_setr_epi32(0, block_bytes, 2 * block_bytes, 3 * block_bytes, 4 * block_bytes,
                                          5 * block_bytes, 6 * block_bytes, 7 * block_bytes);
  return _mm256_i32gather_epi32(reinterpret_cast<const int*>(p), index, 1);
}

inline __m256i low_nibbles(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
inline __m256i high_nibbles(__m256i v) { return low_nibbles(_mm256_srli_epi16(v, 4)); }

// The nibbles of 8 blocks, 16 bytes at p in each: first halves of two blocks a vector, then second halves.
template <int block_bytes>
inline void unpack_nibbles(const std::uint8_t* p, __m256i* q) {
  for (int i = 0; i < 4; ++i) {
    const __m256i v =
        _mm256_set_m128i(load_half(p + (2 * i + 1) * block_bytes), load_half(p + 2 * i * block_bytes));
    const int at = i / 2 * 4 + i % 2;
    q[at] = low_nibbles(v);
    q[at + 2] = high_nibbles(v);
  }
}

// 32 bits to 32 bytes, 16 where the bit is set.
inline __m256i spread_bits(std::uint32_t bits) {
  const __m256i bytes =
      _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)),
                          _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ULL));
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
  return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

// Adds bit 4 to the codes of 8 blocks: `high` points to the first block's 32 bits of them.
template <int block_bytes>
inline void add_fifth_bits(const std::uint8_t* high, __m256i* q) {
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t a = load_u32(high + 2 * i * block_bytes);
    const std::uint32_t b = load_u32(high + (2 * i + 1) * block_bytes);
    const int at = i / 2 * 4 + i % 2;
    q[at] = _mm256_or_si256(q[at], spread_bits((a & 0xffff) | b << 16));
    q[at + 2] = _mm256_or_si256(q[at + 2], spread_bits(a >> 16 | (b & 0xffff0000u)));
  }
}

struct Q4_0 : Shape<32, Arrangement::halves, 3, false> {
  static constexpr int group_bytes = 8 * sizeof(BlockQ4_0);

  static inline void unpack(const std::uint8_t* row, std::int64_t group, __m256i* q, __m256& scale, __m256&) {
    const std::uint8_t* p = row + group * group_bytes;
    unpack_nibbles<18>(p + 2, q);
    scale = low_halves(gather_heads<18>(p));
  }
};

struct Q4_1 : Shape<32, Arrangement::halves, 0, true> {
  static constexpr int group_bytes = 8 * sizeof(BlockQ4_1);

  static inline void unpack(const std::uint8_t* row, std::int64_t group, __m256i* q, __m256& scale,
                            __m256& minimum) {
    const std::uint8_t* p = row + group * group_bytes;
    unpack_nibbles<20>(p + 4, q);
    const __m256i heads = gather_heads<20>(p);
    scale = low_halves(heads);
    minimum = high_halves(heads);
  }
};

struct Q5_0 : Shape<32, Arrangement::halves, 4, false> {
  static constexpr int group_bytes = 8 * sizeof(BlockQ5_0);

  static inline void unpack(const std::uint8_t* row, std::int64_t group, __m256i* q, __m256& scale, __m256&) {
    const std::uint8_t* p = row + group * group_bytes;
    unpack_nibbles<22>(p + 6, q);
    add_fifth_bits<22>(p + 2, q);
    scale = low_halves(gather_heads<22>(p));
  }
};

struct Q5_1 : Shape<32, Arrangement::halves, 0, true> {
  static constexpr int group_bytes = 8 * sizeof(BlockQ5_1);

  static inline void unpack(const std::uint8_t* row, std::int64_t group, __m256i* q, __m256& scale,
                            __m256& minimum) {
    const std::uint8_t* p = row + group * group_bytes;
    unpack_nibbles<24>(p + 8, q);
    add_fifth_bits<24>(p + 4, q);
    const __m256i heads = gather_heads<24>(p);
    scale = low_halves(heads);
    minimum = high_halves(heads);
  }
};

struct Q8_0 : Shape<32, Arrangement::natural, 0, false> {
  static constexpr bool signed_codes = true;
  static constexpr int group_bytes = 8 * sizeof(BlockQ8_0);

  static inline void unpack(const std::uint8_t* row, std::int64_t group, __m256i* q, __m256& scale, __m256&) {
    const std::uint8_t* p = row + group * group_bytes;
    for (int i = 0; i < 8; ++i) q[i] = load(p + 34 * i + 2);
    scale = low_halves(gather_heads<34>(p));
  }
};

// The eight 6-bit scales (first 8 bytes of the result) and minima (last 8) of Q4_K and Q5_K: SubScales,
// four at a time.
inline __m128i packed_sub_scales(const std::uint8_t* p) {
  const std::uint32_t a = load_u32(p), b = load_u32(p + 4), c = load_u32(p + 8);
  const std::uint32_t scale_high = (c & 0x0f0f0f0fu) | ((a >> 2) & 0x30303030u);
  const std::uint32_t min_high = ((c >> 4) & 0x0f0f0f0fu) | ((b >> 2) & 0x30303030u);
  return _mm_setr_epi32(static_cast<int>(a & 0x3f3f3f3fu), static_cast<int>(scale_high),
                        static_cast<int>(b & 0x3f3f3f3fu), static_cast<int>(min_high));
}

inline void unpack_pair_scales(const std::uint8_t* p, __m256& scale, __m256& minimum) {
  const __m128i sub = packed_sub_scales(p + 4);
  const __m256i head = _mm256_set1_epi32(static_cast<int>(load_u32(p)));
  scale = _mm256_mul_ps(low_halves(head), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(sub)));
  const __m256 min =
      _mm256_mul_ps(high_halves(head), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(sub, 8))));
  minimum = _mm256_xor_ps(min, _mm256_set1_ps(-0.0f));
}

struct Q4_K : Shape<32, Arrangement::natural, 0, true> {
  static constexpr bool may_end_in_group = false;
  static constexpr int group_bytes = sizeof(BlockQ4_K);

  static inline void unpack(const std::uint8_t* row, std::int64_t group, __m256i* q, __m256& scale,
                            __m256& minimum) {
    const std::uint8_t* p = row + group * group_bytes;
    for (int i = 0; i < 4; ++i) {
      const __m256i v = load(p + 16 + 32 * i);
      q[2 * i] = low_nibbles(v);
      q[2 * i + 1] = high_nibbles(v);
    }
    unpack_pair_scales(p, scale, minimum);
  }
};

struct Q5_K : Shape<32, Arrangement::natural, 0, true> {
  static constexpr bool may_end_in_group = false;
  static constexpr int group_bytes = sizeof(BlockQ5_K);

  static inline void unpack(const std::uint8_t* row, std::int64_t group, __m256i* q, __m256& scale,
                            __m256& minimum) {
    const std::uint8_t* p = row + group * group_bytes;
    const __m256i high = load(p + 16), sixteen = _mm256_set1_epi8(16);
    for (int i = 0; i < 4; ++i) {
      const __m256i v = load(p + 48 + 32 * i);
      const __m256i even = _mm256_set1_epi8(static_cast<char>(1 << 2 * i));
      const __m256i odd = _mm256_set1_epi8(static_cast<char>(2 << 2 * i));
      const auto fifth_bit = [&](__m256i bit) {
        return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(high, bit), bit), sixteen);
      };
      q[2 * i] = _mm256_or_si256(low_nibbles(v), fifth_bit(even));
      q[2 * i + 1] = _mm256_or_si256(high_nibbles(v), fifth_bit(odd));
    }
    unpack_pair_scales(p, scale, minimum);
  }
};

// A group is half a block: 128 elements.
struct Q6_K : Shape<16, Arrangement::natural, 5, false> {
  static constexpr bool may_end_in_group = false;
  static constexpr int group_bytes = sizeof(BlockQ6_K) / 2;

  static inline void unpack(const std::uint8_t* row, std::int64_t group, __m256i* q, __m256& scale, __m256&) {
    const std::uint8_t* p = row + group / 2 * static_cast<std::int64_t>(sizeof(BlockQ6_K));
    const std::int64_t half = group % 2;
    const __m256i a = load(p + 64 * half), b = load(p + 64 * half + 32), high = load(p + 128 + 32 * half);
    const __m256i mask = _mm256_set1_epi8(0x30);
    q[0] = _mm256_or_si256(low_nibbles(a), _mm256_and_si256(_mm256_slli_epi16(high, 4), mask));
    q[1] = _mm256_or_si256(low_nibbles(b), _mm256_and_si256(_mm256_slli_epi16(high, 2), mask));
    q[2] = _mm256_or_si256(high_nibbles(a), _mm256_and_si256(high, mask));
    q[3] = _mm256_or_si256(high_nibbles(b), _mm256_and_si256(_mm256_srli_epi16(high, 2), mask));
    std::uint16_t d;
    std::memcpy(&d, p + 208, sizeof d);
    const __m128i scales = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 192 + 8 * half));
    scale = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(scales)),
                          _mm256_cvtph_ps(_mm_set1_epi16(static_cast<short>(d))));
  }
};

}  // namespace
}  // namespace shoal::tensor::avx2
