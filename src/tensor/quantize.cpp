// SPDX-License-Identifier: Apache-2.0
// Encoding of every storage format, for tests and made-up models: each block takes the smallest scale
// that covers its values, stores it rounded, and rounds every value to the nearest code of that scale.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "shoal/base/half.h"
#include "shoal/tensor/format.h"
#include "tensor/blocks.h"

namespace shoal::tensor {
namespace {

int nearest_code(float value, float scale, int lowest, int highest) {
  if (!(std::abs(scale) > 0)) return std::clamp(0, lowest, highest);
  return static_cast<int>(
      std::clamp(std::nearbyint(value / scale), static_cast<float>(lowest), static_cast<float>(highest)));
}

// The value of largest magnitude, with its sign: asymmetric codes (-8..7) give it the longer side.
float extreme(const float* x, int n) {
  return *std::max_element(x, x + n, [](float a, float b) { return std::abs(a) < std::abs(b); });
}

// Codes of a 32-element block: low nibbles into q, bit 4 into high (null for the 4-bit formats).
void put_code(int code, int element, std::uint8_t* q, std::uint8_t* high) {
  const int byte = element % 16;
  q[byte] = static_cast<std::uint8_t>(q[byte] | (code & 15) << (element < 16 ? 0 : 4));
  if (high != nullptr)
    high[element / 8] = static_cast<std::uint8_t>(high[element / 8] | (code >> 4) << (element % 8));
}

void encode_symmetric(const float* x, int half_range, std::uint16_t& d, std::uint8_t* q, std::uint8_t* high) {
  d = float16_bits(-extreme(x, 32) / static_cast<float>(half_range));
  for (int i = 0; i < 32; ++i)
    put_code(nearest_code(x[i], float16_value(d), -half_range, half_range - 1) + half_range, i, q, high);
}

void encode_affine(const float* x, int highest, std::uint16_t& d, std::uint16_t& m, std::uint8_t* q,
                   std::uint8_t* high) {
  const auto [low, top] = std::minmax_element(x, x + 32);
  d = float16_bits((*top - *low) / static_cast<float>(highest));
  m = float16_bits(*low);
  for (int i = 0; i < 32; ++i)
    put_code(nearest_code(x[i] - float16_value(m), float16_value(d), 0, highest), i, q, high);
}

void encode(const float* x, BlockQ4_0& b) { encode_symmetric(x, 8, b.d, b.q, nullptr); }
void encode(const float* x, BlockQ4_1& b) { encode_affine(x, 15, b.d, b.m, b.q, nullptr); }
void encode(const float* x, BlockQ5_0& b) { encode_symmetric(x, 16, b.d, b.q, b.high); }
void encode(const float* x, BlockQ5_1& b) { encode_affine(x, 31, b.d, b.m, b.q, b.high); }

void encode(const float* x, BlockQ8_0& b) {
  b.d = float16_bits(std::abs(extreme(x, 32)) / 127);
  for (int i = 0; i < 32; ++i)
    b.q[i] = static_cast<std::int8_t>(nearest_code(x[i], float16_value(b.d), -127, 127));
}

void pack_sub_scales(const SubScales& s, std::uint8_t* packed) {
  for (int i = 0; i < 4; ++i) {
    packed[i] = static_cast<std::uint8_t>(s.scale[i] | (s.scale[4 + i] >> 4) << 6);
    packed[4 + i] = static_cast<std::uint8_t>(s.min[i] | (s.min[4 + i] >> 4) << 6);
    packed[8 + i] = static_cast<std::uint8_t>((s.scale[4 + i] & 15) | (s.min[4 + i] & 15) << 4);
  }
}

// Six-bit codes of eight non-negative numbers under one half-precision unit; returns the unit's bits.
std::uint16_t encode_sub_scales(const float* wanted, std::uint8_t* codes) {
  const std::uint16_t unit = float16_bits(*std::max_element(wanted, wanted + 8) / 63);
  for (int s = 0; s < 8; ++s)
    codes[s] = static_cast<std::uint8_t>(nearest_code(wanted[s], float16_value(unit), 0, 63));
  return unit;
}

// Q4_K and Q5_K: fills d, dmin, scales and gives the 256 codes to put(element, code).
template <class Block, class Put>
void encode_pairs(const float* x, int highest, Block& b, Put put) {
  float scale[8], minus_min[8];
  for (int s = 0; s < 8; ++s) {
    const auto [low, top] = std::minmax_element(x + 32 * s, x + 32 * s + 32);
    minus_min[s] = std::max(0.0f, -*low);
    scale[s] = (std::max(*top, 0.0f) + minus_min[s]) / static_cast<float>(highest);
  }
  SubScales codes;
  b.d = encode_sub_scales(scale, codes.scale);
  b.dmin = encode_sub_scales(minus_min, codes.min);
  pack_sub_scales(codes, b.scales);
  for (int i = 0; i < 256; ++i) {
    const float step = float16_value(b.d) * static_cast<float>(codes.scale[i / 32]);
    const float min = float16_value(b.dmin) * static_cast<float>(codes.min[i / 32]);
    put(i, nearest_code(x[i] + min, step, 0, highest));
  }
}

void put_paired_nibble(std::uint8_t* q, int i, int code) {
  std::uint8_t& byte = q[32 * (i / 64) + i % 32];
  byte = static_cast<std::uint8_t>(byte | (code & 15) << (i % 64 < 32 ? 0 : 4));
}

void encode(const float* x, BlockQ4_K& b) {
  encode_pairs(x, 15, b, [&b](int i, int code) { put_paired_nibble(b.q, i, code); });
}

void encode(const float* x, BlockQ5_K& b) {
  encode_pairs(x, 31, b, [&b](int i, int code) {
    put_paired_nibble(b.q, i, code);
    b.high[i % 32] = static_cast<std::uint8_t>(b.high[i % 32] | (code >> 4) << (i / 32));
  });
}

void encode(const float* x, BlockQ6_K& b) {
  float scale[16];
  for (int s = 0; s < 16; ++s) scale[s] = -extreme(x + 16 * s, 16) / 32;
  b.d = float16_bits(std::abs(extreme(scale, 16)) / 127);
  for (int s = 0; s < 16; ++s)
    b.scales[s] = static_cast<std::int8_t>(nearest_code(scale[s], float16_value(b.d), -127, 127));
  for (int i = 0; i < 256; ++i) {
    const float step = float16_value(b.d) * static_cast<float>(b.scales[i / 16]);
    const int code = nearest_code(x[i], step, -32, 31) + 32;
    const int half = i / 128, j = i % 128;
    std::uint8_t& low = b.low[64 * half + j % 64];
    std::uint8_t& high = b.high[32 * half + j % 32];
    low = static_cast<std::uint8_t>(low | (code & 15) << (j < 64 ? 0 : 4));
    high = static_cast<std::uint8_t>(high | (code >> 4) << (2 * (j / 32)));
  }
}

template <class Block>
void encode_row(std::span<const float> values, std::byte* row, std::size_t block_elements) {
  for (std::size_t i = 0; i < values.size(); i += block_elements, row += sizeof(Block)) {
    Block block{};
    encode(values.data() + i, block);
    std::memcpy(row, &block, sizeof block);
  }
}

template <class Number>
void convert_row(std::span<const float> values, std::byte* row) {
  for (const float value : values) {
    const Number number(value);
    std::memcpy(row, &number, sizeof number);
    row += sizeof number;
  }
}

}  // namespace

void quantize(Format format, std::span<const float> values, std::byte* row) {
  (void)row_bytes(format, static_cast<std::int64_t>(values.size()));  // rejects lengths that are no blocks
  switch (format) {
    case Format::f32: return convert_row<float>(values, row);
    case Format::f16: return convert_row<float16>(values, row);
    case Format::bf16: return convert_row<bfloat16>(values, row);
    case Format::q4_0: return encode_row<BlockQ4_0>(values, row, 32);
    case Format::q4_1: return encode_row<BlockQ4_1>(values, row, 32);
    case Format::q5_0: return encode_row<BlockQ5_0>(values, row, 32);
    case Format::q5_1: return encode_row<BlockQ5_1>(values, row, 32);
    case Format::q8_0: return encode_row<BlockQ8_0>(values, row, 32);
    case Format::q4_k: return encode_row<BlockQ4_K>(values, row, 256);
    case Format::q5_k: return encode_row<BlockQ5_K>(values, row, 256);
    case Format::q6_k: return encode_row<BlockQ6_K>(values, row, 256);
  }
}

}  // namespace shoal::tensor
