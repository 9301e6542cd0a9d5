// SPDX-License-Identifier: Apache-2.0
// The table of storage formats: names, type numbers in GGUF files, block sizes.
#include "shoal/tensor/format.h"

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::tensor {
namespace {

// In the order of the enumeration. Type numbers: the GGUF specification's ggml_type.
constexpr FormatTraits format_table[] = {
    {"F32", 0, 1, 4},       {"F16", 1, 1, 2},       {"BF16", 30, 1, 2},     {"Q4_0", 2, 32, 18},
    {"Q4_1", 3, 32, 20},    {"Q5_0", 6, 32, 22},    {"Q5_1", 7, 32, 24},    {"Q8_0", 8, 32, 34},
    {"Q4_K", 12, 256, 144}, {"Q5_K", 13, 256, 176}, {"Q6_K", 14, 256, 210},
};
static_assert(std::size(format_table) == std::size(all_formats));

}  // namespace

const FormatTraits& traits(Format format) { return format_table[static_cast<std::size_t>(format)]; }

std::optional<Format> format_from_gguf(std::uint32_t gguf_type) {
  for (const Format format : all_formats)
    if (traits(format).gguf_type == gguf_type) return format;
  return std::nullopt;
}

std::int64_t row_bytes(Format format, std::int64_t elements) {
  const FormatTraits& t = traits(format);
  if (elements < 0 || elements % t.block_elements != 0)
    fail(ErrorCode::invalid_argument,
         fmt::format("a row of {} elements cannot be stored as {}: the length must be a multiple of {}; "
                     "choose another format for this tensor",
                     elements, t.name, t.block_elements));
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(elements / t.block_elements, t.block_bytes, &bytes))
    fail(ErrorCode::invalid_argument,
         fmt::format("a row of {} elements of {} is larger than 2^63 bytes", elements, t.name));
  return bytes;
}

}  // namespace shoal::tensor
