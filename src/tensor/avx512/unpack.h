// SPDX-License-Identifier: Apache-2.0
// Weight blocks to registers. Each format unpacks a group of 16 units (a unit is what shares a scale: 32
// elements, 16 in Q6_K) into unsigned codes, in the order of the prepared activations, and a lane per
// unit of the float scale and minimum:   w = scale * (code - 2^offset_bits) + minimum.
//
// An unpack() reads group_bytes from its pointer. Lanes of units past the end of a row are garbage
// that the caller masks. With fewer than 4 `quarters` it may leave the codes of units from 4 * quarters on.
#pragma once

#include "tensor/avx512/lanes.h"
#include "tensor/blocks.h"
#include "tensor/prepared.h"

namespace shoal::tensor::avx512 {
namespace {

template <int unit_, Arrangement arrangement_, int offset_bits_, bool has_minimum_>
struct Shape {
  static constexpr int unit = unit_;
  static constexpr Arrangement arrangement = arrangement_;
  static constexpr int offset_bits = offset_bits_;  // 0: codes have no offset
  static constexpr bool has_minimum = has_minimum_;
  static constexpr int vectors = 16 * unit / 64;  // of 64 codes a group
};

// 16 halves in the low words of 32-bit lanes to floats.
inline __m512 low_halves(__m512i words) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words)); }
inline __m512 high_halves(__m512i words) { return low_halves(_mm512_srli_epi32(words, 16)); }

// The first four bytes of 16 blocks.
template <int block_bytes>
inline __m512i gather_heads(const std::uint8_t* p) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_i32gather_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32(block_bytes)), p, 1);
}

// The 16 bytes at p of four blocks, one a 128-bit lane.
template <int block_bytes>
inline __m512i four_pieces(const std::uint8_t* p) {
  const auto piece = [p](int i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * block_bytes));
  };
  __m512i v = _mm512_castsi128_si512(piece(0));
  v = _mm512_mask_broadcast_i32x4(v, 0x00f0, piece(1));
  v = _mm512_mask_broadcast_i32x4(v, 0x0f00, piece(2));
  return _mm512_mask_broadcast_i32x4(v, 0xf000, piece(3));
}

inline __m512i low_nibbles(__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
inline __m512i high_nibbles(__m512i v) { return low_nibbles(_mm512_srli_epi16(v, 4)); }

struct Q4_0 : Shape<32, Arrangement::halves, 3, false> {
  static constexpr int group_bytes = 16 * sizeof(BlockQ4_0);

  template <int quarters = 4>
  static inline void unpack(const std::uint8_t* p, __m512i* q, __m512& scale, __m512&) {
    for (int i = 0; i < quarters; ++i) {
      const __m512i v = four_pieces<18>(p + 72 * i + 2);
      q[2 * i] = low_nibbles(v);
      q[2 * i + 1] = high_nibbles(v);
    }
    scale = low_halves(gather_heads<18>(p));
  }
};

struct Q4_1 : Shape<32, Arrangement::halves, 0, true> {
  static constexpr int group_bytes = 16 * sizeof(BlockQ4_1);

  // A block is 5 words of 32 bits. Four blocks lie in two overlapping loads, so one two-source
  // permutation picks their nibbles, and one masked permutation their (d, m) pairs.
  template <int quarters = 4>
  static inline void unpack(const std::uint8_t* p, __m512i* q, __m512& scale, __m512& minimum) {
    const __m512i nibbles = _mm512_setr_epi32(1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 28, 29, 30, 31);
    const __m512i heads = _mm512_setr_epi32(0, 5, 10, 15, 0, 5, 10, 15, 0, 5, 10, 15, 0, 5, 10, 15);
    __m512i pairs = _mm512_setzero_si512();
    for (int i = 0; i < quarters; ++i) {
      const __m512i first = load(p + 80 * i), last = load(p + 80 * i + 16);
      const __m512i v = _mm512_permutex2var_epi32(first, nibbles, last);
      q[2 * i] = low_nibbles(v);
      q[2 * i + 1] = high_nibbles(v);
      pairs = _mm512_mask_permutexvar_epi32(pairs, static_cast<__mmask16>(15 << 4 * i), heads, first);
    }
    scale = low_halves(pairs);
    minimum = high_halves(pairs);
  }
};

// Adds bit 4 to the codes of four blocks: `high` points to the first block's 32 bits of them.
template <int block_bytes>
inline void add_fifth_bits(const std::uint8_t* high, __m512i& first_halves, __m512i& second_halves) {
  std::uint64_t first = 0, second = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t bits = load_u32(high + i * block_bytes);
    first |= (bits & 0xffff) << 16 * i;
    second |= (bits >> 16) << 16 * i;
  }
  const __m512i sixteen = _mm512_set1_epi8(16);
  first_halves = _mm512_mask_add_epi8(first_halves, first, first_halves, sixteen);
  second_halves = _mm512_mask_add_epi8(second_halves, second, second_halves, sixteen);
}

struct Q5_0 : Shape<32, Arrangement::halves, 4, false> {
  static constexpr int group_bytes = 16 * sizeof(BlockQ5_0);

  template <int quarters = 4>
  static inline void unpack(const std::uint8_t* p, __m512i* q, __m512& scale, __m512&) {
    for (int i = 0; i < quarters; ++i) {
      const __m512i v = four_pieces<22>(p + 88 * i + 6);
      q[2 * i] = low_nibbles(v);
      q[2 * i + 1] = high_nibbles(v);
      add_fifth_bits<22>(p + 88 * i + 2, q[2 * i], q[2 * i + 1]);
    }
    scale = low_halves(gather_heads<22>(p));
  }
};

struct Q5_1 : Shape<32, Arrangement::halves, 0, true> {
  static constexpr int group_bytes = 16 * sizeof(BlockQ5_1);

  template <int quarters = 4>
  static inline void unpack(const std::uint8_t* p, __m512i* q, __m512& scale, __m512& minimum) {
    for (int i = 0; i < quarters; ++i) {
      const __m512i v = four_pieces<24>(p + 96 * i + 8);
      q[2 * i] = low_nibbles(v);
      q[2 * i + 1] = high_nibbles(v);
      add_fifth_bits<24>(p + 96 * i + 4, q[2 * i], q[2 * i + 1]);
    }
    const __m512i heads = gather_heads<24>(p);
    scale = low_halves(heads);
    minimum = high_halves(heads);
  }
};

// Signed codes, made unsigned by 128, which flips their top bit.
struct Q8_0 : Shape<32, Arrangement::natural, 7, false> {
  static constexpr int group_bytes = 16 * sizeof(BlockQ8_0);

  template <int quarters = 4>
  static inline void unpack(const std::uint8_t* p, __m512i* q, __m512& scale, __m512&) {
    for (int i = 0; i < 2 * quarters; ++i) {
      const auto* pair = reinterpret_cast<const __m256i*>(p + 68 * i + 2);
      const auto* second = reinterpret_cast<const __m256i*>(p + 68 * i + 36);
      const __m512i v = _mm512_mask_broadcast_i64x4(_mm512_castsi256_si512(_mm256_loadu_si256(pair)), 0xf0,
                                                    _mm256_loadu_si256(second));
      q[i] = _mm512_xor_si512(v, _mm512_set1_epi8(-128));
    }
    scale = low_halves(gather_heads<34>(p));
  }
};

// The eight 6-bit scales (first word of the result) and minima (second) of Q4_K and Q5_K: SubScales,
// four at a time.
struct PackedSubScales {
  std::uint64_t scale, min;
};

inline PackedSubScales packed_sub_scales(const std::uint8_t* p) {
  const std::uint32_t a = load_u32(p), b = load_u32(p + 4), c = load_u32(p + 8);
  const std::uint32_t scale_high = (c & 0x0f0f0f0fu) | ((a >> 2) & 0x30303030u);
  const std::uint32_t min_high = ((c >> 4) & 0x0f0f0f0fu) | ((b >> 2) & 0x30303030u);
  return {(a & 0x3f3f3f3fu) | std::uint64_t{scale_high} << 32,
          (b & 0x3f3f3f3fu) | std::uint64_t{min_high} << 32};
}

inline __m512 bytes_to_floats(std::uint64_t low, std::uint64_t high) {
  const __m128i bytes = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
}

// Scales and minima of the two blocks of a group, `stride` apart.
inline void unpack_pair_scales(const std::uint8_t* p, int stride, __m512& scale, __m512& minimum) {
  const PackedSubScales s0 = packed_sub_scales(p + 4), s1 = packed_sub_scales(p + stride + 4);
  const __m512i heads = _mm512_mask_set1_epi32(_mm512_set1_epi32(static_cast<int>(load_u32(p))), 0xff00,
                                               static_cast<int>(load_u32(p + stride)));
  scale = _mm512_mul_ps(low_halves(heads), bytes_to_floats(s0.scale, s1.scale));
  const __m512 min = _mm512_mul_ps(high_halves(heads), bytes_to_floats(s0.min, s1.min));
  minimum = _mm512_xor_ps(min, _mm512_set1_ps(-0.0f));
}

// 32 bytes to 64 codes: low nibbles, then high nibbles.
inline __m512i both_nibbles(const std::uint8_t* p) {
  const __m512i v = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return low_nibbles(_mm512_srlv_epi64(v, _mm512_setr_epi64(0, 0, 0, 0, 4, 4, 4, 4)));
}

struct Q4_K : Shape<32, Arrangement::natural, 0, true> {
  static constexpr int group_bytes = 2 * sizeof(BlockQ4_K);

  template <int quarters = 4>
  static inline void unpack(const std::uint8_t* p, __m512i* q, __m512& scale, __m512& minimum) {
    for (int i = 0; i < 8; ++i) q[i] = both_nibbles(p + 144 * (i / 4) + 16 + 32 * (i % 4));
    unpack_pair_scales(p, 144, scale, minimum);
  }
};

struct Q5_K : Shape<32, Arrangement::natural, 0, true> {
  static constexpr int group_bytes = 2 * sizeof(BlockQ5_K);

  template <int quarters = 4>
  static inline void unpack(const std::uint8_t* p, __m512i* q, __m512& scale, __m512& minimum) {
    for (int block = 0; block < 2; ++block, p += 176) {
      const __m512i high =
          _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16)));
      for (int i = 0; i < 4; ++i) {
        const long long even = 0x0101010101010101LL << 2 * i, odd = even << 1;
        const __m512i bit = _mm512_setr_epi64(even, even, even, even, odd, odd, odd, odd);
        const __m512i codes = both_nibbles(p + 48 + 32 * i);
        q[4 * block + i] =
            _mm512_mask_add_epi8(codes, _mm512_test_epi8_mask(high, bit), codes, _mm512_set1_epi8(16));
      }
    }
    unpack_pair_scales(p - 352, 176, scale, minimum);
  }
};

struct Q6_K : Shape<16, Arrangement::natural, 5, false> {
  static constexpr int group_bytes = sizeof(BlockQ6_K);

  template <int quarters = 4>
  static inline void unpack(const std::uint8_t* p, __m512i* q, __m512& scale, __m512&) {
    for (int half = 0; half < 2; ++half) {
      const __m512i low = load(p + 64 * half);
      const __m512i high =
          _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 128 + 32 * half)));
      // Bits 4 and 5 of the codes: bits 0, 1 | 2, 3 of `high` for the low nibbles, 4, 5 | 6, 7 for the high.
      const __m512i mask = _mm512_set1_epi8(0x30);
      const __m512i first = _mm512_sllv_epi64(high, _mm512_setr_epi64(4, 4, 4, 4, 2, 2, 2, 2));
      const __m512i second = _mm512_srlv_epi64(high, _mm512_setr_epi64(0, 0, 0, 0, 2, 2, 2, 2));
      q[2 * half] = _mm512_or_si512(low_nibbles(low), _mm512_and_si512(first, mask));
      q[2 * half + 1] = _mm512_or_si512(high_nibbles(low), _mm512_and_si512(second, mask));
    }
    const __m128i scales = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 192));
    std::uint16_t d;
    std::memcpy(&d, p + 208, sizeof d);
    scale = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(scales)),
                          _mm512_cvtph_ps(_mm256_set1_epi16(static_cast<short>(d))));
  }
};

}  // namespace
}  // namespace shoal::tensor::avx512
