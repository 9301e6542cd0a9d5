// SPDX-License-Identifier: Apache-2.0
// The scalar kernel set: the plain reference that every other set is compared with, and what machines
// without a faster set run. Products add up their units of 32 (or 16) elements in order.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "shoal/base/half.h"
#include "tensor/blocks.h"
#include "tensor/prepared.h"
#include "tensor/raw_kernels.h"

namespace shoal::tensor {
namespace {

constexpr float smallest_maximum = 0x1p-119f;  // below it 127 / maximum overflows; such a unit is zero

void prepare(int format, const float* x, std::int64_t columns, std::uint8_t* out) {
  const Arrangement arrangement = arrangement_of(format);
  std::memset(out, 0, static_cast<std::size_t>(prepared_row_bytes(format, columns)));
  if (arrangement == Arrangement::floats) {
    std::memcpy(out, x, static_cast<std::size_t>(columns) * sizeof(float));
    return;
  }
  const PreparedLayout layout = prepared_layout(columns);
  auto* codes = reinterpret_cast<std::int8_t*>(out);
  auto* scales = reinterpret_cast<float*>(out + layout.scale);
  auto* sums = reinterpret_cast<float*>(out + layout.sum);
  auto* code_sum32 = reinterpret_cast<std::int32_t*>(out + layout.code_sum32);
  auto* code_sum16 = reinterpret_cast<std::int32_t*>(out + layout.code_sum16);
  for (std::int64_t unit = 0; unit < columns / 32; ++unit) {
    std::uint32_t largest = 0;  // magnitudes compared as bits: NaN and infinity are the largest of all
    for (std::int64_t i = 0; i < 32; ++i)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(x[unit * 32 + i]) & 0x7fffffffu);
    const float maximum = std::bit_cast<float>(largest);
    const bool finite = largest < 0x7f800000u;
    const bool zero = maximum < smallest_maximum;
    const float inverse = finite && !zero ? 127.0f / maximum : 0.0f;
    for (std::int64_t i = 0; i < 32; ++i) {
      const std::int64_t element = unit * 32 + i;
      const int code = finite ? static_cast<int>(std::nearbyint(x[element] * inverse)) : 0;
      codes[arrangement == Arrangement::halves ? halves_position(element) : element] =
          static_cast<std::int8_t>(code);
      code_sum16[unit * 2 + i / 16] += code;
    }
    code_sum32[unit] = code_sum16[unit * 2] + code_sum16[unit * 2 + 1];
    scales[unit] = !finite ? std::bit_cast<float>(0x7fc00000u) : zero ? 0.0f : maximum / 127.0f;
    sums[unit] = scales[unit] * static_cast<float>(code_sum32[unit]);
  }
}

template <class Function>
void for_each_product(const MultiplyArguments& a, Function product) {
  for (std::int64_t token = 0; token < a.tokens; ++token)
    for (std::int64_t row = a.row_begin; row < a.row_end; ++row)
      a.y[token * a.y_stride + row] =
          product(a.rows + row * a.row_bytes, a.x + token * a.prepared_bytes, a.columns);
}

// Plain float weights.

template <class Number>
float float_product(const std::uint8_t* row, const std::uint8_t* x, std::int64_t columns) {
  float sum = 0;
  for (std::int64_t i = 0; i < columns; ++i) {
    Number weight;
    float value;
    std::memcpy(&weight, row + i * static_cast<std::int64_t>(sizeof weight), sizeof weight);
    std::memcpy(&value, x + i * 4, sizeof value);
    sum += static_cast<float>(weight) * value;
  }
  return sum;
}

// Quantised weights: each block type as codes, and a scale and a minimum for each of its units.

template <int elements_, int unit_>
struct Codes {
  static constexpr int elements = elements_, unit = unit_, units = elements / unit;
  int code[elements];
  float scale[units];
  float min[units] = {};
};

template <class Block>
void unpack_nibbles(const Block& b, int offset, Codes<32, 32>& c) {
  for (int i = 0; i < 16; ++i) {
    c.code[i] = (b.q[i] & 15) - offset;
    c.code[i + 16] = (b.q[i] >> 4) - offset;
  }
  if constexpr (requires { b.high; })
    for (int i = 0; i < 32; ++i) c.code[i] += ((b.high[i / 8] >> (i % 8)) & 1) * 16;
  c.scale[0] = float16_value(b.d);
  if constexpr (requires { b.m; }) c.min[0] = float16_value(b.m);
}

void unpack(const BlockQ4_0& b, Codes<32, 32>& c) { unpack_nibbles(b, 8, c); }
void unpack(const BlockQ4_1& b, Codes<32, 32>& c) { unpack_nibbles(b, 0, c); }
void unpack(const BlockQ5_0& b, Codes<32, 32>& c) { unpack_nibbles(b, 16, c); }
void unpack(const BlockQ5_1& b, Codes<32, 32>& c) { unpack_nibbles(b, 0, c); }

void unpack(const BlockQ8_0& b, Codes<32, 32>& c) {
  for (int i = 0; i < 32; ++i) c.code[i] = b.q[i];
  c.scale[0] = float16_value(b.d);
}

template <class Block>
void unpack_pairs(const Block& b, Codes<256, 32>& c) {
  for (int i = 0; i < 256; ++i) {
    const int byte = b.q[32 * (i / 64) + i % 32];
    c.code[i] = i % 64 < 32 ? byte & 15 : byte >> 4;
    if constexpr (requires { b.high; }) c.code[i] += ((b.high[i % 32] >> (i / 32)) & 1) * 16;
  }
  const SubScales s = unpack_sub_scales(b.scales);
  for (int u = 0; u < 8; ++u) {
    c.scale[u] = float16_value(b.d) * static_cast<float>(s.scale[u]);
    c.min[u] = -(float16_value(b.dmin) * static_cast<float>(s.min[u]));
  }
}

void unpack(const BlockQ4_K& b, Codes<256, 32>& c) { unpack_pairs(b, c); }
void unpack(const BlockQ5_K& b, Codes<256, 32>& c) { unpack_pairs(b, c); }

void unpack(const BlockQ6_K& b, Codes<256, 16>& c) {
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, j = i % 128;
    const int low = b.low[64 * half + j % 64], high = b.high[32 * half + j % 32];
    c.code[i] = ((j < 64 ? low & 15 : low >> 4) | ((high >> (2 * (j / 32))) & 3) << 4) - 32;
  }
  for (int u = 0; u < 16; ++u) c.scale[u] = float16_value(b.d) * static_cast<float>(b.scales[u]);
}

template <class Block, class BlockCodes, Arrangement arrangement>
float quantised_product(const std::uint8_t* row, const std::uint8_t* x, std::int64_t columns) {
  const PreparedLayout layout = prepared_layout(columns);
  const auto* codes = reinterpret_cast<const std::int8_t*>(x);
  const auto* scales = reinterpret_cast<const float*>(x + layout.scale);
  const auto* sums = reinterpret_cast<const float*>(x + layout.sum);
  float total = 0;
  for (std::int64_t block_begin = 0; block_begin < columns; block_begin += BlockCodes::elements) {
    Block block;
    std::memcpy(&block, row, sizeof block);
    row += sizeof block;
    BlockCodes weights;
    unpack(block, weights);
    for (int u = 0; u < BlockCodes::units; ++u) {
      const std::int64_t begin = block_begin + u * BlockCodes::unit;
      std::int32_t dot = 0;
      for (int i = 0; i < BlockCodes::unit; ++i) {
        const std::int64_t place =
            arrangement == Arrangement::halves ? halves_position(begin + i) : begin + i;
        dot += weights.code[u * BlockCodes::unit + i] * codes[place];
      }
      total += static_cast<float>(dot) * (weights.scale[u] * scales[begin / 32]);
      if constexpr (BlockCodes::unit == 32) total += weights.min[u] * sums[begin / 32];
    }
  }
  return total;
}

template <float (*product)(const std::uint8_t*, const std::uint8_t*, std::int64_t)>
void multiply(const MultiplyArguments& a) {
  for_each_product(a, product);
}

std::int64_t no_scratch(std::int64_t, std::int64_t) { return 0; }

// The rest of a layer.

void rms_norm(const float* x, const float* weight, float epsilon, float* out, std::int64_t n) {
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += double{x[i]} * double{x[i]};
  const float factor =
      static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(n) + double{epsilon}));
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * factor * weight[i];
}

void silu_multiply(float* gate, const float* up, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) gate[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

void add(float* x, const float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] += y[i];
}

void softmax(float* x, std::int64_t n) {
  if (n == 0) return;
  const float maximum = *std::max_element(x, x + n);
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] = std::exp(x[i] - maximum);
    sum += x[i];
  }
  for (std::int64_t i = 0; i < n; ++i) x[i] /= sum;
}

float dot_f32(const float* q, const float* k, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += q[i] * k[i];
  return sum;
}

float dot_f16(const float* q, const std::uint16_t* k, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += q[i] * float16_value(k[i]);
  return sum;
}

void accumulate_f32(float weight, const float* v, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] += weight * v[i];
}

void accumulate_f16(float weight, const std::uint16_t* v, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] += weight * float16_value(v[i]);
}

void to_f16(const float* x, std::uint16_t* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = float16_bits(x[i]);
}

constexpr Arrangement natural = Arrangement::natural, halves = Arrangement::halves;

}  // namespace

const RawKernels scalar_kernels = {
    .prepare = prepare,
    .multiply = {multiply<float_product<float>>, multiply<float_product<float16>>,
                 multiply<float_product<bfloat16>>,
                 multiply<quantised_product<BlockQ4_0, Codes<32, 32>, halves>>,
                 multiply<quantised_product<BlockQ4_1, Codes<32, 32>, halves>>,
                 multiply<quantised_product<BlockQ5_0, Codes<32, 32>, halves>>,
                 multiply<quantised_product<BlockQ5_1, Codes<32, 32>, halves>>,
                 multiply<quantised_product<BlockQ8_0, Codes<32, 32>, natural>>,
                 multiply<quantised_product<BlockQ4_K, Codes<256, 32>, natural>>,
                 multiply<quantised_product<BlockQ5_K, Codes<256, 32>, natural>>,
                 multiply<quantised_product<BlockQ6_K, Codes<256, 16>, natural>>},
    .scratch_bytes = no_scratch,
    .rms_norm = rms_norm,
    .silu_multiply = silu_multiply,
    .add = add,
    .softmax = softmax,
    .dot_f32 = dot_f32,
    .dot_f16 = dot_f16,
    .accumulate_f32 = accumulate_f32,
    .accumulate_f16 = accumulate_f16,
    .to_f16 = to_f16,
};

}  // namespace shoal::tensor
