// SPDX-License-Identifier: Apache-2.0
// The GGUF parser. Layout (GGUF specification, version 3): magic, version, number of tensors, number of
// keys; keys (name, type, value); tensors (name, dimensions, type, offset); padding; tensor data.
#include "shoal/infer/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "infer/gguf_names.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are read without swapping bytes");

constexpr std::uint64_t min_key_bytes = 8 + 4 + 1;         // empty name, type, one byte of value
constexpr std::uint64_t min_tensor_bytes = 8 + 4 + 4 + 8;  // empty name, no dimensions, type, offset
constexpr std::uint64_t max_name_bytes = 65535;  // of a key, by the specification; of a tensor, by ours
constexpr std::uint32_t max_dimensions = 4;
constexpr std::uint64_t max_alignment = std::uint64_t{1} << 20;

/// Walks over the bytes that are there, and tells an end of the bytes from an end of the file.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::uint64_t file_size, const std::string& file)
      : bytes_(bytes), file_size_(file_size), file_(file) {}

  const std::string& file() const { return file_; }
  std::uint64_t position() const { return position_; }
  std::uint64_t left_in_file() const { return file_size_ - position_; }

  /// The next `count` bytes; `what` they are, for the message.
  const std::byte* take(std::uint64_t count, std::string_view what) {
    if (count > left_in_file())
      fail(ErrorCode::format,
           fmt::format("{}: the file is truncated or damaged: {} takes {} bytes at byte {}, the file has {}",
                       file_, what, count, position_, file_size_));
    if (count > bytes_.size() - position_) throw GgufNeedsMoreBytes{};
    const std::byte* data = bytes_.data() + position_;
    position_ += count;
    return data;
  }

  template <class T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what), sizeof(T));
    return value;
  }

  /// A count of items of at least `item_bytes` each: refused when the file cannot hold as many.
  std::uint64_t count(std::uint64_t item_bytes, std::string_view what) {
    const auto items = number<std::uint64_t>(what);
    if (items > left_in_file() / item_bytes)
      fail(
          ErrorCode::format,
          fmt::format("{}: the file is truncated or damaged: {} is {}, which cannot fit in the {} bytes left",
                      file_, what, items, left_in_file()));
    return items;
  }

  /// A bound for reserve(): no more items than the bytes at hand can justify.
  std::size_t reservable(std::uint64_t items, std::uint64_t item_bytes) const {
    return static_cast<std::size_t>(std::min(items, (bytes_.size() - position_) / item_bytes));
  }

  std::string string(std::uint64_t limit, std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    if (length > limit && length <= left_in_file())
      fail(ErrorCode::format,
           fmt::format("{}: {} is {} bytes long, at most {} are allowed", file_, what, length, limit));
    const std::byte* data = take(length, what);
    return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(length)};
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t file_size_;
  const std::string& file_;
  std::uint64_t position_ = 0;
};

bool is_text(const unsigned char* bytes, std::size_t count) {
  return std::all_of(bytes, bytes + count, [](unsigned char c) {
    return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t';
  });
}

void check_magic(Cursor& cursor) {
  unsigned char magic[4];
  std::memcpy(magic, cursor.take(4, "the magic number"), 4);
  if (std::memcmp(magic, "GGUF", 4) == 0) return;
  const std::string_view hint = std::memcmp(magic, "vers", 4) == 0
                                    ? "; is it a Git LFS pointer? Fetch the real file with: git lfs pull"
                                : is_text(magic, 4) ? "; is it a text, a pointer file or a web page?"
                                                    : "";
  fail(ErrorCode::format,
       fmt::format("{}: not a GGUF file: it begins with {:02x} {:02x} {:02x} {:02x} instead of 47 47 55 46{}",
                   cursor.file(), magic[0], magic[1], magic[2], magic[3], hint));
}

std::uint32_t read_version(Cursor& cursor) {
  const auto version = cursor.number<std::uint32_t>("the version");
  if (version == 2 || version == 3) return version;
  if (version != 0 && (version & 0xffffu) == 0)
    fail(ErrorCode::unsupported,
         fmt::format("{}: its byte order differs from this host's (big-endian file, little-endian host); "
                     "get or convert the little-endian file",
                     cursor.file()));
  fail(ErrorCode::unsupported,
       fmt::format("{}: GGUF version {} is not supported, only 2 and 3 are; convert the model again",
                   cursor.file(), version));
}

/// Bytes of a scalar in the file, or nothing for strings, arrays and unknown types.
std::optional<std::uint64_t> scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::uint8:
    case GgufType::int8:
    case GgufType::boolean: return 1;
    case GgufType::uint16:
    case GgufType::int16: return 2;
    case GgufType::uint32:
    case GgufType::int32:
    case GgufType::float32: return 4;
    case GgufType::uint64:
    case GgufType::int64:
    case GgufType::float64: return 8;
    case GgufType::string:
    case GgufType::array: break;
  }
  return std::nullopt;
}

std::int64_t read_boolean(Cursor& cursor, std::string_view what) {
  const auto value = cursor.number<std::uint8_t>(what);
  if (value > 1)
    fail(ErrorCode::format,
         fmt::format("{}: {} is a BOOL of value {}, neither 0 nor 1", cursor.file(), what, value));
  return value;
}

std::int64_t read_integer(Cursor& cursor, GgufType type, std::string_view what) {
  switch (type) {
    case GgufType::uint8: return cursor.number<std::uint8_t>(what);
    case GgufType::int8: return cursor.number<std::int8_t>(what);
    case GgufType::uint16: return cursor.number<std::uint16_t>(what);
    case GgufType::int16: return cursor.number<std::int16_t>(what);
    case GgufType::uint32: return cursor.number<std::uint32_t>(what);
    case GgufType::int32: return cursor.number<std::int32_t>(what);
    case GgufType::boolean: return read_boolean(cursor, what);
    default: return cursor.number<std::int64_t>(what);  // also uint64, whose bits are kept
  }
}

double read_real(Cursor& cursor, GgufType type, std::string_view what) {
  return type == GgufType::float32 ? static_cast<double>(cursor.number<float>(what))
                                   : cursor.number<double>(what);
}

bool is_real(GgufType type) { return type == GgufType::float32 || type == GgufType::float64; }

GgufType read_type(Cursor& cursor, std::string_view what) {
  const auto type = cursor.number<std::uint32_t>(what);
  if (type > static_cast<std::uint32_t>(GgufType::float64))
    fail(ErrorCode::format, fmt::format("{}: {} has the unknown type {}", cursor.file(), what, type));
  return static_cast<GgufType>(type);
}

GgufArray read_array(Cursor& cursor, std::string_view what) {
  GgufArray array;
  array.type = read_type(cursor, what);
  if (array.type == GgufType::array)
    fail(ErrorCode::unsupported, fmt::format("{}: {} is an array of arrays", cursor.file(), what));
  const std::uint64_t item_bytes = scalar_bytes(array.type).value_or(8);  // a string begins with its length
  const std::uint64_t items = cursor.count(item_bytes, fmt::format("the length of {}", what));
  const std::size_t reserve = cursor.reservable(items, item_bytes);
  if (array.type == GgufType::string) {
    auto& values = array.values.emplace<std::vector<std::string>>();
    values.reserve(reserve);
    for (std::uint64_t i = 0; i < items; ++i) values.push_back(cursor.string(UINT64_MAX, what));
  } else if (is_real(array.type)) {
    auto& values = array.values.emplace<std::vector<double>>();
    values.reserve(reserve);
    for (std::uint64_t i = 0; i < items; ++i) values.push_back(read_real(cursor, array.type, what));
  } else {
    auto& values = array.values.emplace<std::vector<std::int64_t>>();
    values.reserve(reserve);
    for (std::uint64_t i = 0; i < items; ++i) values.push_back(read_integer(cursor, array.type, what));
  }
  return array;
}

GgufValue read_value(Cursor& cursor, std::string_view what) {
  GgufValue value;
  value.type = read_type(cursor, what);
  if (value.type == GgufType::array)
    value.value = read_array(cursor, what);
  else if (value.type == GgufType::string)
    value.value = cursor.string(UINT64_MAX, what);
  else if (is_real(value.type))
    value.value = read_real(cursor, value.type, what);
  else
    value.value = read_integer(cursor, value.type, what);
  return value;
}

GgufMetadata read_metadata(Cursor& cursor, std::uint64_t keys) {
  GgufMetadata metadata;
  metadata.source = cursor.file();
  metadata.entries.reserve(cursor.reservable(keys, min_key_bytes));
  std::unordered_set<std::string> seen;
  for (std::uint64_t i = 0; i < keys; ++i) {
    GgufEntry entry;
    entry.key = cursor.string(max_name_bytes, fmt::format("the name of key {}", i));
    const std::string what = fmt::format("key '{}'", printable(entry.key));
    if (!seen.insert(entry.key).second)
      fail(ErrorCode::format, fmt::format("{}: {} appears twice", cursor.file(), what));
    entry.value = read_value(cursor, what);
    metadata.entries.push_back(std::move(entry));
  }
  return metadata;
}

std::uint64_t read_alignment(const GgufMetadata& metadata) {
  const GgufValue* value = metadata.find("general.alignment");
  if (value == nullptr) return 32;
  if (value->type != GgufType::uint32)
    fail(ErrorCode::format, fmt::format("{}: key 'general.alignment' is of type {}, expected UINT32",
                                        metadata.source, to_string(value->type)));
  const auto alignment = static_cast<std::uint64_t>(std::get<std::int64_t>(value->value));
  // The specification asks for a multiple of 8; the files in use hold any power of two, also 1.
  if (!std::has_single_bit(alignment) || alignment > max_alignment)
    fail(ErrorCode::format, fmt::format("{}: key 'general.alignment' is {}, expected a power of two up to {}",
                                        metadata.source, alignment, max_alignment));
  return alignment;
}

/// Number of elements of `shape`, with checked arithmetic.
std::int64_t checked_elements(const Cursor& cursor, const std::string& what,
                              const std::vector<std::int64_t>& shape) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t elements = 1;
  for (const std::int64_t dimension : shape)
    if (__builtin_mul_overflow(elements, dimension, &elements))
      fail(ErrorCode::format, fmt::format("{}: {} has the impossible shape {}: too many elements",
                                          cursor.file(), what, shape_text(shape)));
  return elements;
}

std::vector<std::int64_t> read_shape(Cursor& cursor, const std::string& what) {
  const auto dimensions = cursor.number<std::uint32_t>(what);
  if (dimensions > max_dimensions)
    fail(ErrorCode::format, fmt::format("{}: {} has {} dimensions, at most {} are allowed", cursor.file(),
                                        what, dimensions, max_dimensions));
  std::vector<std::int64_t> shape;
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    const auto size = cursor.number<std::uint64_t>(what);
    if (size > static_cast<std::uint64_t>(INT64_MAX))
      fail(ErrorCode::format,
           fmt::format("{}: {} has the impossible size {} in dimension {}", cursor.file(), what, size, d));
    shape.push_back(static_cast<std::int64_t>(size));
  }
  return shape;
}

/// Bytes of `elements` (not 0) in the tensor's format, whose rows are whole blocks.
std::uint64_t data_bytes(const Cursor& cursor, const std::string& what, const TensorInfo& tensor,
                         std::int64_t elements) {
  const tensor::FormatTraits& format = tensor::traits(tensor.format);
  if (tensor.columns() % format.block_elements != 0)
    fail(ErrorCode::format,
         fmt::format("{}: {} has rows of {} elements, not a multiple of the {} of a {} block", cursor.file(),
                     what, tensor.columns(), format.block_elements, format.name));
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements / format.block_elements, format.block_bytes, &bytes) ||
      bytes > static_cast<std::uint64_t>(INT64_MAX))
    fail(ErrorCode::format, fmt::format("{}: {} has the impossible shape {}: too many bytes", cursor.file(),
                                        what, shape_text(tensor.shape)));
  return bytes;
}

/// One entry of the tensor table; `offset` is still relative to the start of the data.
TensorInfo read_tensor(Cursor& cursor, std::uint64_t index, std::uint64_t alignment) {
  TensorInfo tensor;
  tensor.name = cursor.string(max_name_bytes, fmt::format("the name of tensor {}", index));
  const std::string what = fmt::format("tensor '{}'", printable(tensor.name));
  tensor.shape = read_shape(cursor, what);
  const auto type = cursor.number<std::uint32_t>(what);
  const auto offset = cursor.number<std::uint64_t>(what);
  const std::int64_t elements = checked_elements(cursor, what, tensor.shape);
  const std::optional<tensor::Format> format = tensor::format_from_gguf(type);
  // An empty tensor is a marker: it has no data, so neither its type nor its place matters.
  if (elements == 0) {
    tensor.format = format.value_or(tensor::Format::f32);
    return tensor;
  }
  if (!format)
    fail(ErrorCode::unsupported,
         fmt::format("{}: {} has type {} ({}), which is not supported; supported are {}", cursor.file(), what,
                     type, tensor_type_name(type), supported_formats()));
  if (offset % alignment != 0)
    fail(ErrorCode::format, fmt::format("{}: {} has offset {}, not a multiple of the alignment {}",
                                        cursor.file(), what, offset, alignment));
  tensor.format = *format;
  tensor.bytes = data_bytes(cursor, what, tensor, elements);
  tensor.offset = offset;
  return tensor;
}

/// Turns offsets into places in the file, and checks that each tensor lies within it and overlaps none.
void place_tensors(GgufHeader& header, std::uint64_t file_size, const std::string& file) {
  std::vector<const TensorInfo*> order;
  for (TensorInfo& tensor : header.tensors) {
    std::uint64_t end = 0;
    if (__builtin_add_overflow(tensor.offset, header.data_offset, &tensor.offset) ||
        __builtin_add_overflow(tensor.offset, tensor.bytes, &end) || (end > file_size && tensor.bytes > 0))
      fail(
          ErrorCode::format,
          fmt::format("{}: the file is truncated or damaged: tensor '{}' needs {} bytes from byte {} on, the "
                      "file has {}",
                      file, printable(tensor.name), tensor.bytes, tensor.offset, file_size));
    if (tensor.bytes > 0) order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, &TensorInfo::offset);
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset)
      fail(ErrorCode::format, fmt::format("{}: tensors '{}' and '{}' overlap", file,
                                          printable(order[i - 1]->name), printable(order[i]->name)));
}

void check_unique(const std::vector<TensorInfo>& tensors, const std::string& file) {
  std::unordered_set<std::string_view> seen;
  for (const TensorInfo& tensor : tensors)
    if (!seen.insert(tensor.name).second)
      fail(ErrorCode::format, fmt::format("{}: tensor '{}' appears twice", file, printable(tensor.name)));
}

}  // namespace

std::int64_t TensorInfo::rows() const {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;  // the others may be too large to multiply
  std::int64_t product = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) product *= shape[d];
  return product;
}

GgufHeader parse_gguf(std::span<const std::byte> bytes, std::uint64_t file_size,
                      const std::string& file_name) {
  if (file_size == 0) fail(ErrorCode::format, fmt::format("{}: the file is empty", file_name));
  Cursor cursor(bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), file_size))),
                file_size, file_name);
  GgufHeader header;
  check_magic(cursor);
  header.version = read_version(cursor);
  const std::uint64_t tensors = cursor.count(min_tensor_bytes, "the number of tensors");
  const std::uint64_t keys = cursor.count(min_key_bytes, "the number of keys");
  header.metadata = read_metadata(cursor, keys);
  header.alignment = read_alignment(header.metadata);
  header.tensors.reserve(cursor.reservable(tensors, min_tensor_bytes));
  for (std::uint64_t i = 0; i < tensors; ++i)
    header.tensors.push_back(read_tensor(cursor, i, header.alignment));
  check_unique(header.tensors, file_name);
  header.header_bytes = cursor.position();
  header.data_offset = (header.header_bytes + header.alignment - 1) / header.alignment * header.alignment;
  place_tensors(header, file_size, file_name);
  return header;
}

}  // namespace shoal::infer
