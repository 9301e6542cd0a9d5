// SPDX-License-Identifier: Apache-2.0
// Block layouts of the quantised formats, as GGUF files hold them (little-endian, no padding).
// Plain structures and nothing else: kernel sets compiled with instruction-set flags include this.
//
// In every 32-element format byte i of `q` holds element i in its low and element i + 16 in its high
// nibble. Halves (d, m, ...) are IEEE binary16 bits.
#pragma once

#include <cstdint>

namespace shoal::tensor {

struct BlockQ4_0 {  // w = d * (q - 8)
  std::uint16_t d;
  std::uint8_t q[16];
};

struct BlockQ4_1 {  // w = d * q + m
  std::uint16_t d, m;
  std::uint8_t q[16];
};

struct BlockQ5_0 {  // w = d * (q - 16); bit i of the 32-bit number `high` is bit 4 of element i
  std::uint16_t d;
  std::uint8_t high[4];
  std::uint8_t q[16];
};

struct BlockQ5_1 {  // w = d * q + m
  std::uint16_t d, m;
  std::uint8_t high[4];
  std::uint8_t q[16];
};

struct BlockQ8_0 {  // w = d * q
  std::uint16_t d;
  std::int8_t q[32];
};

// 8 sub-blocks of 32; w = d * scale[s] * q - dmin * min[s]. Scales and minima have 6 bits (SubScales).
// Byte i of the 32 bytes number c of `q`: element 64 c + i low nibble, element 64 c + 32 + i high.
struct BlockQ4_K {
  std::uint16_t d, dmin;
  std::uint8_t scales[12];
  std::uint8_t q[128];
};

struct BlockQ5_K {  // as Q4_K; bit s of high[i] is bit 4 of element 32 s + i
  std::uint16_t d, dmin;
  std::uint8_t scales[12];
  std::uint8_t high[32];
  std::uint8_t q[128];
};

// 16 sub-blocks of 16; w = d * scale[s] * (q - 32). Two halves of 128 elements; in each, with 64 bytes
// of `low` and 32 of `high`: elements 0..63 are the low nibbles, 64..127 the high nibbles of `low`, and
// bits 2 k, 2 k + 1 of high[i] are bits 4 and 5 of element 32 k + i.
struct BlockQ6_K {
  std::uint8_t low[128];
  std::uint8_t high[64];
  std::int8_t scales[16];
  std::uint16_t d;
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34);
static_assert(sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

/// The 8 six-bit scales and minima of a Q4_K or Q5_K block, unpacked from their 12 bytes: the first
/// four of each are the low six bits of bytes 0..3 and 4..7; the last four have their low four bits in
/// bytes 8..11 (scales low, minima high nibble) and their two high bits on top of bytes 0..3 and 4..7.
struct SubScales {
  std::uint8_t scale[8], min[8];
};

static inline SubScales unpack_sub_scales(const std::uint8_t* packed) {
  SubScales s;
  for (int i = 0; i < 4; ++i) {
    const int a = packed[i], b = packed[4 + i], c = packed[8 + i];
    s.scale[i] = static_cast<std::uint8_t>(a & 63);
    s.min[i] = static_cast<std::uint8_t>(b & 63);
    s.scale[4 + i] = static_cast<std::uint8_t>((c & 15) | ((a >> 6) << 4));
    s.min[4 + i] = static_cast<std::uint8_t>((c >> 4) | ((b >> 6) << 4));
  }
  return s;
}

}  // namespace shoal::tensor
