// SPDX-License-Identifier: Apache-2.0
// Storage formats of weights: plain floats and the block-quantised formats of GGUF files.
// A row of n elements is n / block_elements blocks, one after the other, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace shoal::tensor {

enum class Format : std::uint8_t { f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

inline constexpr Format all_formats[] = {Format::f32,  Format::f16,  Format::bf16, Format::q4_0,
                                         Format::q4_1, Format::q5_0, Format::q5_1, Format::q8_0,
                                         Format::q4_k, Format::q5_k, Format::q6_k};

struct FormatTraits {
  std::string_view name;        // as users write it: "F32", "Q4_K"
  std::uint32_t gguf_type;      // number of the type in a GGUF file
  std::int64_t block_elements;  // elements a block: 1, 32 or 256
  std::int64_t block_bytes;
};

const FormatTraits& traits(Format format);
std::optional<Format> format_from_gguf(std::uint32_t gguf_type);

/// Bytes of a row of `elements`, which must be a multiple of the format's block_elements.
std::int64_t row_bytes(Format format, std::int64_t elements);

/// Reference decoding of one row; `row` holds row_bytes(format, values.size()) bytes.
void dequantize(Format format, const std::byte* row, std::span<float> values);

/// Encodes one row (values.size() a multiple of block_elements). Meant for tests and for made-up
/// models: the nearest representable value at a simple choice of scales, not the best quality.
void quantize(Format format, std::span<const float> values, std::byte* row);

}  // namespace shoal::tensor
