// SPDX-License-Identifier: Apache-2.0
// The GGUF container, versions 2 and 3: typed key-value metadata and a table of tensors.
// The parser takes bytes, trusts none of them, and never allocates more than the bytes it was given
// can justify. Every error names the file, and the key or tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shoal/tensor/format.h"

namespace shoal::infer {

/// Type numbers of metadata values, as in the file.
enum class GgufType : std::uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  string,
  array,
  uint64,
  int64,
  float64,
};
const char* to_string(GgufType type);

/// An array of scalars or strings (arrays of arrays are refused: no model uses them).
struct GgufArray {
  GgufType type = GgufType::uint8;
  // Integers and booleans are widened to int64 (uint64 values keep their bits), floats to double.
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values;
  std::size_t size() const;
};

struct GgufValue {
  GgufType type = GgufType::uint8;
  std::variant<std::int64_t, double, std::string, GgufArray> value;
};

struct GgufEntry {
  std::string key;
  GgufValue value;
};

struct TensorInfo {
  std::string name;
  std::vector<std::int64_t> shape;  // as in the file: shape[0] is the contiguous dimension (columns)
  tensor::Format format = tensor::Format::f32;
  std::uint64_t offset = 0;  // of the first byte, from the start of the file
  std::uint64_t bytes = 0;
  int file = 0;  // which file of a split model

  std::int64_t columns() const { return shape.empty() ? 1 : shape[0]; }
  std::int64_t rows() const;  // product of the other dimensions; 0 for an empty tensor
};

/// The typed key-value part. Lookups that ask for a type and find another throw a format error
/// which names the file and the key.
class GgufMetadata {
 public:
  std::string source;              // file name for messages
  std::vector<GgufEntry> entries;  // in file order, keys unique

  const GgufValue* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Any integer type whose value fits is accepted for an integer, any float type for a float.
  std::int64_t integer(std::string_view key) const;  // throws when absent
  std::int64_t integer_or(std::string_view key, std::int64_t fallback) const;
  double real(std::string_view key) const;
  double real_or(std::string_view key, double fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  const std::string& string(std::string_view key) const;
  std::string string_or(std::string_view key, std::string_view fallback) const;
  const GgufArray* array(std::string_view key) const;  // null when absent, throws when not an array
  const std::vector<std::string>& strings(std::string_view key) const;
  std::vector<std::int64_t> integers_or_empty(std::string_view key) const;
  std::vector<double> reals_or_empty(std::string_view key) const;
};

struct GgufHeader {
  std::uint32_t version = 0;
  std::uint64_t alignment = 32;
  std::uint64_t data_offset = 0;   // where tensor data begins = size of header and padding
  std::uint64_t header_bytes = 0;  // before padding
  GgufMetadata metadata;
  std::vector<TensorInfo> tensors;  // in file order, names unique
};

/// Thrown by parse_gguf when `bytes` is a proper prefix of the file and ends within the header.
struct GgufNeedsMoreBytes {};

/// Parses the header at the start of a file of `file_size` bytes, of which `bytes` is a prefix, and
/// checks every tensor's shape, type and place against `file_size`. Throws Error (format or
/// unsupported), or GgufNeedsMoreBytes when bytes.size() < file_size and more are needed.
GgufHeader parse_gguf(std::span<const std::byte> bytes, std::uint64_t file_size,
                      const std::string& file_name);

}  // namespace shoal::infer
