// SPDX-License-Identifier: Apache-2.0
// Reference decoding of every storage format: one short function a format, no tricks.
#include <cstring>

#include "shoal/base/half.h"
#include "shoal/tensor/format.h"
#include "tensor/blocks.h"

namespace shoal::tensor {
namespace {

std::uint32_t high_bits(const std::uint8_t* high) {
  return high[0] | std::uint32_t{high[1]} << 8 | std::uint32_t{high[2]} << 16 | std::uint32_t{high[3]} << 24;
}

int nibble(const std::uint8_t* q, int element) {  // 32-element formats: element and element + 16 share a byte
  return element < 16 ? q[element] & 15 : q[element - 16] >> 4;
}

// One decode() a block type: out has the block's element count.

void decode(const BlockQ4_0& b, float* out) {
  for (int i = 0; i < 32; ++i) out[i] = float16_value(b.d) * static_cast<float>(nibble(b.q, i) - 8);
}

void decode(const BlockQ4_1& b, float* out) {
  for (int i = 0; i < 32; ++i)
    out[i] = float16_value(b.d) * static_cast<float>(nibble(b.q, i)) + float16_value(b.m);
}

void decode(const BlockQ5_0& b, float* out) {
  const std::uint32_t high = high_bits(b.high);
  for (int i = 0; i < 32; ++i) {
    const int q = nibble(b.q, i) | static_cast<int>((high >> i) & 1u) << 4;
    out[i] = float16_value(b.d) * static_cast<float>(q - 16);
  }
}

void decode(const BlockQ5_1& b, float* out) {
  const std::uint32_t high = high_bits(b.high);
  for (int i = 0; i < 32; ++i) {
    const int q = nibble(b.q, i) | static_cast<int>((high >> i) & 1u) << 4;
    out[i] = float16_value(b.d) * static_cast<float>(q) + float16_value(b.m);
  }
}

void decode(const BlockQ8_0& b, float* out) {
  for (int i = 0; i < 32; ++i) out[i] = float16_value(b.d) * static_cast<float>(b.q[i]);
}

// The nibble of element i of a 256-element block with sub-blocks in pairs (Q4_K and Q5_K).
int paired_nibble(const std::uint8_t* q, int i) {
  const std::uint8_t byte = q[32 * (i / 64) + i % 32];
  return i % 64 < 32 ? byte & 15 : byte >> 4;
}

void decode(const BlockQ4_K& b, float* out) {
  const SubScales s = unpack_sub_scales(b.scales);
  for (int i = 0; i < 256; ++i) {
    const float scale = float16_value(b.d) * static_cast<float>(s.scale[i / 32]);
    const float min = float16_value(b.dmin) * static_cast<float>(s.min[i / 32]);
    out[i] = scale * static_cast<float>(paired_nibble(b.q, i)) - min;
  }
}

void decode(const BlockQ5_K& b, float* out) {
  const SubScales s = unpack_sub_scales(b.scales);
  for (int i = 0; i < 256; ++i) {
    const float scale = float16_value(b.d) * static_cast<float>(s.scale[i / 32]);
    const float min = float16_value(b.dmin) * static_cast<float>(s.min[i / 32]);
    const int q = paired_nibble(b.q, i) | ((b.high[i % 32] >> (i / 32)) & 1) << 4;
    out[i] = scale * static_cast<float>(q) - min;
  }
}

void decode(const BlockQ6_K& b, float* out) {
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, j = i % 128;
    const std::uint8_t low = b.low[64 * half + j % 64];
    const int high = (b.high[32 * half + j % 32] >> (2 * (j / 32))) & 3;
    const int q = (j < 64 ? low & 15 : low >> 4) | high << 4;
    out[i] = float16_value(b.d) * static_cast<float>(b.scales[i / 16]) * static_cast<float>(q - 32);
  }
}

template <class Block>
void decode_row(const std::byte* row, std::span<float> values, std::size_t block_elements) {
  for (std::size_t i = 0; i < values.size(); i += block_elements, row += sizeof(Block)) {
    Block block;
    std::memcpy(&block, row, sizeof block);
    decode(block, values.data() + i);
  }
}

template <class Number>
void convert_row(const std::byte* row, std::span<float> values) {
  for (float& value : values) {
    Number number;
    std::memcpy(&number, row, sizeof number);
    value = static_cast<float>(number);
    row += sizeof number;
  }
}

}  // namespace

void dequantize(Format format, const std::byte* row, std::span<float> values) {
  (void)row_bytes(format, static_cast<std::int64_t>(values.size()));  // rejects lengths that are no blocks
  switch (format) {
    case Format::f32: return convert_row<float>(row, values);
    case Format::f16: return convert_row<float16>(row, values);
    case Format::bf16: return convert_row<bfloat16>(row, values);
    case Format::q4_0: return decode_row<BlockQ4_0>(row, values, 32);
    case Format::q4_1: return decode_row<BlockQ4_1>(row, values, 32);
    case Format::q5_0: return decode_row<BlockQ5_0>(row, values, 32);
    case Format::q5_1: return decode_row<BlockQ5_1>(row, values, 32);
    case Format::q8_0: return decode_row<BlockQ8_0>(row, values, 32);
    case Format::q4_k: return decode_row<BlockQ4_K>(row, values, 256);
    case Format::q5_k: return decode_row<BlockQ5_K>(row, values, 256);
    case Format::q6_k: return decode_row<BlockQ6_K>(row, values, 256);
  }
}

}  // namespace shoal::tensor
