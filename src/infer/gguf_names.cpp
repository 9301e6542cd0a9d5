// SPDX-License-Identifier: Apache-2.0
#include "infer/gguf_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shoal/infer/gguf.h"
#include "shoal/tensor/format.h"

namespace shoal::infer {

const char* to_string(GgufType type) {
  switch (type) {
    case GgufType::uint8: return "UINT8";
    case GgufType::int8: return "INT8";
    case GgufType::uint16: return "UINT16";
    case GgufType::int16: return "INT16";
    case GgufType::uint32: return "UINT32";
    case GgufType::int32: return "INT32";
    case GgufType::float32: return "FLOAT32";
    case GgufType::boolean: return "BOOL";
    case GgufType::string: return "STRING";
    case GgufType::array: return "ARRAY";
    case GgufType::uint64: return "UINT64";
    case GgufType::int64: return "INT64";
    case GgufType::float64: return "FLOAT64";
  }
  return "unknown";
}

std::string_view tensor_type_name(std::uint32_t gguf_type) {
  // The GGUF specification's table, for the message about a type that Shoal does not read.
  static constexpr std::string_view names[] = {
      "F32",    "F16",   "Q4_0",  "Q4_1",   "",      "",      "Q5_0",    "Q5_1",   "Q8_0",    "Q8_1",
      "Q2_K",   "Q3_K",  "Q4_K",  "Q5_K",   "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S",
      "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",    "I16",   "I32",     "I64",    "F64",     "IQ1_M",
      "BF16",   "",      "",      "",       "TQ1_0", "TQ2_0", "",        "",       "",        "MXFP4"};
  if (gguf_type >= std::size(names) || names[gguf_type].empty()) return "unknown";
  return names[gguf_type];
}

std::string supported_formats() {
  std::string text;
  for (const tensor::Format format : tensor::all_formats)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", tensor::traits(format).name);
  return text;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '\'' || c == '\\')
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  if (text.size() > limit) out += "...";
  return out;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace shoal::infer
