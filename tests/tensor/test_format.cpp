// SPDX-License-Identifier: Apache-2.0
// Formats: the table, known blocks decoded against closed forms, and how far encoding may stray.
#include "shoal/tensor/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "shoal/base/error.h"

namespace shoal::tensor {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<float> decode(Format format, const Bytes& bytes, std::size_t elements) {
  EXPECT_EQ(static_cast<std::size_t>(row_bytes(format, static_cast<std::int64_t>(elements))), bytes.size());
  std::vector<float> values(elements);
  dequantize(format, reinterpret_cast<const std::byte*>(bytes.data()), values);
  return values;
}

void append(Bytes& bytes, std::initializer_list<int> more) {
  for (const int byte : more) bytes.push_back(static_cast<std::uint8_t>(byte));
}

// 16 bytes: low nibble i, high nibble 15 - i.
void append_ramp(Bytes& bytes) {
  for (int i = 0; i < 16; ++i) append(bytes, {i | (15 - i) << 4});
}

TEST(Format, TableMatchesTheGgufSpecification) {
  const struct {
    Format format;
    const char* name;
    std::uint32_t type;
    std::int64_t elements, bytes;
  } expected[] = {{Format::f32, "F32", 0, 1, 4},        {Format::f16, "F16", 1, 1, 2},
                  {Format::q4_0, "Q4_0", 2, 32, 18},    {Format::q4_1, "Q4_1", 3, 32, 20},
                  {Format::q5_0, "Q5_0", 6, 32, 22},    {Format::q5_1, "Q5_1", 7, 32, 24},
                  {Format::q8_0, "Q8_0", 8, 32, 34},    {Format::q4_k, "Q4_K", 12, 256, 144},
                  {Format::q5_k, "Q5_K", 13, 256, 176}, {Format::q6_k, "Q6_K", 14, 256, 210},
                  {Format::bf16, "BF16", 30, 1, 2}};
  ASSERT_EQ(std::size(expected), std::size(all_formats));
  for (const auto& e : expected) {
    EXPECT_EQ(traits(e.format).name, e.name);
    EXPECT_EQ(traits(e.format).gguf_type, e.type);
    EXPECT_EQ(traits(e.format).block_elements, e.elements);
    EXPECT_EQ(traits(e.format).block_bytes, e.bytes);
    EXPECT_EQ(format_from_gguf(e.type), e.format);
    EXPECT_EQ(row_bytes(e.format, 3 * e.elements), 3 * e.bytes);
    EXPECT_EQ(row_bytes(e.format, 0), 0);
  }
  for (const std::uint32_t unknown : {4u, 5u, 9u, 10u, 11u, 15u, 29u, 31u, 0xffffffffu})
    EXPECT_FALSE(format_from_gguf(unknown).has_value()) << unknown;
}

TEST(Format, RefusesPartOfABlockAndOverflow) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 256 * 256;
  for (const Format format : all_formats) {
    std::vector<std::int64_t> refused = {-traits(format).block_elements};
    if (traits(format).block_elements > 1) refused.insert(refused.end(), {1, 31, 33, 257});
    if (traits(format).block_bytes > traits(format).block_elements) refused.push_back(huge);
    for (const std::int64_t elements : refused) try {
        row_bytes(format, elements);
        ADD_FAILURE() << traits(format).name << " accepted " << elements;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      }
  }
  std::vector<float> values(33);
  std::vector<std::byte> row(64);
  EXPECT_THROW(dequantize(Format::q4_0, row.data(), values), Error);
  EXPECT_THROW(quantize(Format::q8_0, values, row.data()), Error);
}

TEST(Format, DecodesPlainFloats) {
  EXPECT_EQ(decode(Format::f32, {0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0}, 2), (std::vector<float>{1, -2.5f}));
  EXPECT_EQ(decode(Format::f16, {0x00, 0x3c, 0x00, 0xc1, 0x01, 0x00}, 3),
            (std::vector<float>{1, -2.5f, 0x1p-24f}));
  EXPECT_EQ(decode(Format::bf16, {0x80, 0x3f, 0x20, 0xc0}, 2), (std::vector<float>{1, -2.5f}));
}

TEST(Format, DecodesFourBitBlocks) {
  Bytes q4_0 = {0x00, 0x38};  // d = 0.5
  append_ramp(q4_0);
  Bytes q4_1 = {0x00, 0x38, 0x00, 0xbc};  // d = 0.5, m = -1
  append_ramp(q4_1);
  const std::vector<float> a = decode(Format::q4_0, q4_0, 32), b = decode(Format::q4_1, q4_1, 32);
  for (std::size_t i = 0; i < 32; ++i) {
    const float code = static_cast<float>(i < 16 ? i : 31 - i);
    EXPECT_EQ(a[i], 0.5f * (code - 8)) << i;
    EXPECT_EQ(b[i], 0.5f * code - 1) << i;
  }
}

TEST(Format, DecodesFiveBitBlocks) {
  const Bytes high = {0x0f, 0xa5, 0x00, 0xff};  // bit i of the little-endian number is bit 4 of element i
  Bytes q5_0 = {0x00, 0x40};                    // d = 2
  q5_0.insert(q5_0.end(), high.begin(), high.end());
  append_ramp(q5_0);
  Bytes q5_1 = {0x00, 0x40, 0x00, 0x42};  // d = 2, m = 3
  q5_1.insert(q5_1.end(), high.begin(), high.end());
  append_ramp(q5_1);
  const std::vector<float> a = decode(Format::q5_0, q5_0, 32), b = decode(Format::q5_1, q5_1, 32);
  for (std::size_t i = 0; i < 32; ++i) {
    const int bit = 0xff00a50fu >> i & 1u;
    const float code = static_cast<float>(static_cast<int>(i < 16 ? i : 31 - i) + 16 * bit);
    EXPECT_EQ(a[i], 2 * (code - 16)) << i;
    EXPECT_EQ(b[i], 2 * code + 3) << i;
  }
}

TEST(Format, DecodesEightBitBlocks) {
  Bytes bytes = {0x00, 0x34};  // d = 0.25
  for (int i = 0; i < 32; ++i) append(bytes, {(8 * i - 128) & 255});
  const std::vector<float> values = decode(Format::q8_0, bytes, 32);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], 2 * static_cast<float>(i) - 32) << i;
}

// d = 1, dmin = 0.5, scale[s] = 9 s, min[s] = 63 - 9 s, packed by hand.
const Bytes k_header = {0x00, 0x3c, 0x00, 0x38, 0x80, 0x89, 0xd2, 0xdb,
                        0x7f, 0x76, 0x2d, 0x24, 0xb4, 0x2d, 0x96, 0x0f};

float k_value(std::size_t sub_block, float code) {
  return 9 * static_cast<float>(sub_block) * code - 0.5f * (63 - 9 * static_cast<float>(sub_block));
}

TEST(Format, DecodesQ4K) {
  Bytes bytes = k_header;
  for (int i = 0; i < 8; ++i) append_ramp(bytes);
  const std::vector<float> values = decode(Format::q4_k, bytes, 256);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t s = i / 32, code = s % 2 == 0 ? i % 16 : 15 - i % 16;
    EXPECT_EQ(values[i], k_value(s, static_cast<float>(code))) << i;
  }
}

TEST(Format, DecodesQ5K) {
  Bytes bytes = k_header;
  for (int i = 0; i < 32; ++i) append(bytes, {0xa5 ^ i});
  for (int i = 0; i < 8; ++i) append_ramp(bytes);
  const std::vector<float> values = decode(Format::q5_k, bytes, 256);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t s = i / 32, low = s % 2 == 0 ? i % 16 : 15 - i % 16;
    const std::size_t high = ((0xa5 ^ (i % 32)) >> s) & 1;
    EXPECT_EQ(values[i], k_value(s, static_cast<float>(low + 16 * high))) << i;
  }
}

TEST(Format, DecodesQ6K) {
  std::uint8_t low[128], high[64];
  for (int i = 0; i < 128; ++i) low[i] = static_cast<std::uint8_t>(37 * i + 11);
  for (int i = 0; i < 64; ++i) high[i] = static_cast<std::uint8_t>(73 * i + 5);
  Bytes bytes(low, low + 128);
  bytes.insert(bytes.end(), high, high + 64);
  for (int s = 0; s < 16; ++s) append(bytes, {(s - 8) & 255});
  append(bytes, {0x00, 0x38});  // d = 0.5
  const std::vector<float> values = decode(Format::q6_k, bytes, 256);
  for (int half = 0; half < 2; ++half)
    for (int l = 0; l < 32; ++l) {  // the four quarters of a half, as the format's description lists them
      const int a = low[64 * half + l], b = low[64 * half + 32 + l], h = high[32 * half + l];
      const int codes[4] = {(a & 15) + (h % 4) * 16, (b & 15) + (h / 4 % 4) * 16,
                            (a / 16) + (h / 16 % 4) * 16, (b / 16) + (h / 64) * 16};
      for (int quarter = 0; quarter < 4; ++quarter) {
        const int i = 128 * half + 32 * quarter + l;
        EXPECT_EQ(values[static_cast<std::size_t>(i)],
                  0.5f * static_cast<float>((i / 16 - 8) * (codes[quarter] - 32)))
            << i;
      }
    }
}

// The largest error that one block's encoding may make, from its values and the format alone.
// half = 2^-11 is the relative rounding of a stored half.
float error_bound(Format format, const float* x, std::int64_t n) {
  const auto largest = [](const float* p, std::int64_t count) {
    float m = 0;
    for (std::int64_t i = 0; i < count; ++i) m = std::max(m, std::abs(p[i]));
    return m;
  };
  const float half = 0x1p-11f, amax = largest(x, n);
  const auto [low, top] = std::minmax_element(x, x + n);
  const float range = *top - *low;
  // Symmetric codes -h .. h - 1 with step amax / h: the far end of the short side misses by one step.
  const auto symmetric = [&](float h) { return amax / h * (1 + h * half); };
  const auto affine = [&](float codes) { return range / codes * 0.5f + (range + amax) * half * 1.01f; };
  // Six-bit scales and minima: each is off by at most half of a 63rd of the largest.
  const auto paired = [&](float codes) {
    float scale = 0, min = 0;
    for (std::int64_t s = 0; s < n; s += 32) {
      const auto [l, t] = std::minmax_element(x + s, x + s + 32);
      min = std::max(min, -*l);
      scale = std::max(scale, (std::max(*t, 0.0f) + std::max(0.0f, -*l)) / codes);
    }
    return scale * (1 + 1 / 126.0f) / 2 + codes * scale / 126 + min / 126 + 2 * half * (codes * scale + min);
  };
  switch (format) {
    case Format::f32: return 0;
    case Format::f16: return amax * half;
    case Format::bf16: return amax * 0x1p-8f;
    case Format::q4_0: return symmetric(8);
    case Format::q5_0: return symmetric(16);
    case Format::q4_1: return affine(15);
    case Format::q5_1: return affine(31);
    case Format::q8_0: return amax / 127 * (0.5f + 127 * half);
    case Format::q4_k: return paired(15);
    case Format::q5_k: return paired(31);
    case Format::q6_k: return amax / 32 * (1 + 32 / 254.0f + 64 * half);
  }
  return 0;
}

TEST(Format, EncodingStaysWithinItsStep) {
  std::mt19937 random(7);
  for (const Format format : all_formats) {
    const std::int64_t n = traits(format).block_elements;
    float worst = 0;
    for (int block = 0; block < 200; ++block) {
      std::normal_distribution<float> normal(block % 3 == 0 ? 1.0f : 0.0f, std::ldexp(1.0f, block % 8 - 4));
      std::vector<float> values(static_cast<std::size_t>(n)), decoded(values.size());
      for (float& value : values) value = normal(random);
      std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(format, n)));
      quantize(format, values, row.data());
      dequantize(format, row.data(), decoded);
      const float bound = error_bound(format, values.data(), n);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_LE(std::abs(decoded[i] - values[i]), bound * 1.0001f)
            << traits(format).name << " element " << i;
        if (bound > 0) worst = std::max(worst, std::abs(decoded[i] - values[i]) / bound);
      }
    }
    if (format == Format::f32) continue;
    EXPECT_GT(worst, 0.2f) << traits(format).name << ": the bound says nothing";
  }
}

TEST(Format, EncodesWhatItCanRepresentExactly) {
  for (const Format format : all_formats) {
    const auto n = static_cast<std::size_t>(traits(format).block_elements) * 2;
    for (const float constant : {0.0f, 1.0f, -1.0f}) {
      if (format == Format::q8_0 && constant != 0) continue;  // 1 / 127 is no half
      const std::vector<float> values(n, constant);
      std::vector<float> decoded(n, 99.0f);
      std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(format, static_cast<std::int64_t>(n))));
      quantize(format, values, row.data());
      dequantize(format, row.data(), decoded);
      for (const float value : decoded) ASSERT_NEAR(value, constant, 1e-3f) << traits(format).name;
      if (constant != 0) continue;
      EXPECT_EQ(decoded, values) << traits(format).name;
    }
  }
}

}  // namespace
}  // namespace shoal::tensor
