// SPDX-License-Identifier: Apache-2.0
// Names of things in GGUF files, as messages show them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::infer {

/// Name of a tensor type number, also of those that Shoal cannot read; "unknown" for any other.
std::string_view tensor_type_name(std::uint32_t gguf_type);

/// "F32, F16, ...": the tensor types that Shoal reads.
std::string supported_formats();

/// Text from a file made fit for a one-line message: control characters and quotes escaped, long texts cut.
std::string printable(std::string_view text, std::size_t limit = 80);

/// "[64, 512]"
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace shoal::infer
