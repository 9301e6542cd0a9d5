// SPDX-License-Identifier: Apache-2.0
#include "shoal/infer/gguf_writer.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <ostream>

#include <fmt/format.h>

#include "infer/gguf_names.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

std::uint64_t padding(std::uint64_t position, std::uint64_t alignment) {
  return (alignment - position % alignment) % alignment;
}

/// Bytes of a tensor; throws invalid_argument for a shape that no file can hold.
std::uint64_t shape_bytes(const std::string& name, const std::vector<std::int64_t>& shape,
                          tensor::Format format) {
  const tensor::FormatTraits& traits = tensor::traits(format);
  const bool negative = std::ranges::any_of(shape, [](std::int64_t d) { return d < 0; });
  const bool empty = std::ranges::find(shape, 0) != shape.end();
  const std::int64_t columns = shape.empty() ? 1 : shape[0];
  std::int64_t blocks = columns / traits.block_elements;
  bool overflow = false;
  for (std::size_t d = 1; d < shape.size() && !empty; ++d)
    overflow = overflow || __builtin_mul_overflow(blocks, shape[d], &blocks);
  std::int64_t bytes = 0;
  overflow = overflow || __builtin_mul_overflow(blocks, traits.block_bytes, &bytes);
  if (negative || overflow || shape.size() > 4 || (!empty && columns % traits.block_elements != 0))
    fail(ErrorCode::invalid_argument, fmt::format("tensor '{}': shape {} is impossible in format {}",
                                                  printable(name), shape_text(shape), traits.name));
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

}  // namespace

/// Where the bytes go, and how many went there.
class GgufWriter::Sink {
 public:
  explicit Sink(std::function<void(std::span<const std::byte>)> write) : write_(std::move(write)) {}

  std::uint64_t position() const { return position_; }

  void bytes(std::span<const std::byte> data) {
    write_(data);
    position_ += data.size();
  }
  template <class T>
  void number(T value) {
    bytes(std::as_bytes(std::span(&value, 1)));
  }
  void string(std::string_view text) {
    number<std::uint64_t>(text.size());
    bytes(std::as_bytes(std::span(text)));
  }
  void pad(std::uint64_t alignment) {
    const std::vector<std::byte> zeros(static_cast<std::size_t>(padding(position_, alignment)));
    bytes(zeros);
  }

  /// Integers of `type` from their widened form: the low bytes (little-endian).
  void integer(GgufType type, std::int64_t value) {
    const auto all = std::as_bytes(std::span(&value, 1));
    switch (type) {
      case GgufType::uint8:
      case GgufType::int8:
      case GgufType::boolean: return bytes(all.first(1));
      case GgufType::uint16:
      case GgufType::int16: return bytes(all.first(2));
      case GgufType::uint32:
      case GgufType::int32: return bytes(all.first(4));
      default: return bytes(all);
    }
  }
  void real(GgufType type, double value) {
    if (type == GgufType::float32)
      number(static_cast<float>(value));
    else
      number(value);
  }

  void array(const GgufArray& array) {
    number(static_cast<std::uint32_t>(array.type));
    number<std::uint64_t>(array.size());
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&array.values))
      for (const std::int64_t value : *integers) integer(array.type, value);
    else if (const auto* reals = std::get_if<std::vector<double>>(&array.values))
      for (const double value : *reals) real(array.type, value);
    else
      for (const std::string& text : std::get<std::vector<std::string>>(array.values)) string(text);
  }

  void value(const GgufValue& value) {
    number(static_cast<std::uint32_t>(value.type));
    if (const auto* number_value = std::get_if<std::int64_t>(&value.value))
      integer(value.type, *number_value);
    else if (const auto* real_value = std::get_if<double>(&value.value))
      real(value.type, *real_value);
    else if (const auto* text = std::get_if<std::string>(&value.value))
      string(*text);
    else
      array(std::get<GgufArray>(value.value));
  }

 private:
  std::function<void(std::span<const std::byte>)> write_;
  std::uint64_t position_ = 0;
};

GgufWriter& GgufWriter::set(std::string_view key, GgufValue value) {
  const auto entry = std::ranges::find(entries_, key, &GgufEntry::key);
  if (entry != entries_.end())
    entry->value = std::move(value);
  else
    entries_.push_back({std::string(key), std::move(value)});
  return *this;
}

GgufWriter& GgufWriter::set(std::string_view key, std::string_view text) {
  return set(key, GgufValue{GgufType::string, std::string(text)});
}
GgufWriter& GgufWriter::set(std::string_view key, bool value) {
  return set(key, GgufValue{GgufType::boolean, std::int64_t{value}});
}
GgufWriter& GgufWriter::set(std::string_view key, float value) {
  return set(key, GgufValue{GgufType::float32, double{value}});
}
GgufWriter& GgufWriter::set(std::string_view key, double value) {
  return set(key, GgufValue{GgufType::float64, value});
}
GgufWriter& GgufWriter::set(std::string_view key, const std::vector<std::string>& texts) {
  return set(key, GgufValue{GgufType::array, GgufArray{GgufType::string, texts}});
}
GgufWriter& GgufWriter::set(std::string_view key, const std::vector<float>& values) {
  return set(key, GgufValue{GgufType::array,
                            GgufArray{GgufType::float32, std::vector<double>(values.begin(), values.end())}});
}
GgufWriter& GgufWriter::set(std::string_view key, const std::vector<double>& values) {
  return set(key, GgufValue{GgufType::array, GgufArray{GgufType::float64, values}});
}

GgufWriter& GgufWriter::remove(std::string_view key) {
  std::erase_if(entries_, [&](const GgufEntry& entry) { return entry.key == key; });
  return *this;
}

GgufWriter& GgufWriter::set_alignment(std::uint32_t alignment) {
  if (!std::has_single_bit(alignment))
    fail(ErrorCode::invalid_argument, fmt::format("alignment {} is not a power of two", alignment));
  alignment_ = alignment;
  return set("general.alignment", alignment);
}

GgufWriter& GgufWriter::set_version(std::uint32_t version) {
  version_ = version;
  return *this;
}

GgufWriter& GgufWriter::add_tensor(std::string name, std::vector<std::int64_t> shape, tensor::Format format,
                                   Fill fill) {
  if (std::ranges::find(tensors_, name, &Tensor::name) != tensors_.end())
    fail(ErrorCode::invalid_argument, fmt::format("tensor '{}' is added twice", printable(name)));
  const std::uint64_t bytes = shape_bytes(name, shape, format);
  tensors_.push_back({std::move(name), std::move(shape), format, bytes, std::move(fill)});
  return *this;
}

GgufWriter& GgufWriter::add_tensor(std::string name, std::vector<std::int64_t> shape, tensor::Format format,
                                   std::vector<std::byte> data) {
  if (data.size() != shape_bytes(name, shape, format))
    fail(ErrorCode::invalid_argument,
         fmt::format("tensor '{}': {} bytes given for shape {} in format {}", printable(name), data.size(),
                     shape_text(shape), tensor::traits(format).name));
  const auto shared = std::make_shared<const std::vector<std::byte>>(std::move(data));
  return add_tensor(
      std::move(name), std::move(shape), format, [shared](std::uint64_t begin, std::span<std::byte> out) {
        std::copy_n(shared->begin() + static_cast<std::ptrdiff_t>(begin), out.size(), out.begin());
      });
}

GgufWriter& GgufWriter::add_tensor(std::string name, std::vector<std::int64_t> shape, tensor::Format format,
                                   const std::vector<float>& values) {
  const auto elements = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  std::vector<std::byte> data(static_cast<std::size_t>(shape_bytes(name, shape, format)));
  if (static_cast<std::int64_t>(values.size()) != elements)
    fail(ErrorCode::invalid_argument, fmt::format("tensor '{}': {} values given for shape {}",
                                                  printable(name), values.size(), shape_text(shape)));
  // Blocks do not reach over rows, so all rows are encoded as one.
  if (!values.empty()) tensor::quantize(format, values, data.data());
  return add_tensor(std::move(name), std::move(shape), format, std::move(data));
}

GgufWriter& GgufWriter::remove_tensor(std::string_view name) {
  std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.name == name; });
  return *this;
}

void GgufWriter::write_to(Sink& sink, std::span<const GgufEntry> entries,
                          std::span<const Tensor> tensors) const {
  sink.bytes(std::as_bytes(std::span("GGUF", 4)));
  sink.number(version_);
  sink.number<std::uint64_t>(tensors.size());
  sink.number<std::uint64_t>(entries.size());
  for (const GgufEntry& entry : entries) {
    sink.string(entry.key);
    sink.value(entry.value);
  }
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    sink.string(tensor.name);
    sink.number(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::int64_t size : tensor.shape) sink.number(size);
    sink.number(tensor::traits(tensor.format).gguf_type);
    sink.number(offset);
    offset += tensor.bytes + padding(tensor.bytes, alignment_);
  }
  if (!tensors.empty()) sink.pad(alignment_);
  for (const Tensor& tensor : tensors) {
    const auto columns = tensor.shape.empty() ? 1 : tensor.shape[0];
    const auto row =
        static_cast<std::uint64_t>(tensor.bytes == 0 ? 1 : tensor::row_bytes(tensor.format, columns));
    const std::uint64_t piece = std::max(row, piece_bytes / row * row);
    std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(piece, tensor.bytes)));
    for (std::uint64_t begin = 0; begin < tensor.bytes; begin += piece) {
      const auto out =
          std::span(buffer).first(static_cast<std::size_t>(std::min(piece, tensor.bytes - begin)));
      tensor.fill(begin, out);
      sink.bytes(out);
    }
    sink.pad(alignment_);
  }
}

std::vector<std::byte> GgufWriter::bytes() const {
  std::vector<std::byte> all;
  Sink sink([&](std::span<const std::byte> data) { all.insert(all.end(), data.begin(), data.end()); });
  write_to(sink, entries_, tensors_);
  return all;
}

namespace {

/// Calls `body` with a function that appends to the file `path`.
template <class Body>
void write_file(const std::string& path, const Body& body) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const auto check = [&] {
    if (!file) fail(ErrorCode::io, fmt::format("{}: cannot write: {}", path, std::strerror(errno)));
  };
  check();
  body([&](std::span<const std::byte> data) {
    file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
    check();
  });
  file.close();
  check();
}

}  // namespace

void GgufWriter::write(const std::string& path) const {
  write_file(path, [&](const auto& append) {
    Sink sink(append);
    write_to(sink, entries_, tensors_);
  });
}

std::vector<std::string> GgufWriter::write_split(const std::string& path, int files) const {
  if (files < 1 || files > 65535 || !path.ends_with(".gguf"))
    fail(ErrorCode::invalid_argument,
         fmt::format("{}: cannot be split into {} files: 1 to 65535 and a name ending in .gguf are needed",
                     path, files));
  std::vector<std::string> paths;
  const auto count = static_cast<std::size_t>(files);
  for (std::size_t part = 0; part < count; ++part) {
    GgufWriter keys;
    if (part == 0) keys.entries_ = entries_;
    if (alignment_ != 32) keys.set("general.alignment", alignment_);
    keys.set("split.no", static_cast<std::uint16_t>(part))
        .set("split.count", static_cast<std::uint16_t>(files));
    keys.set("split.tensors.count", static_cast<std::int32_t>(tensors_.size()));
    const std::size_t begin = tensors_.size() * part / count;
    const std::size_t end = tensors_.size() * (part + 1) / count;
    paths.push_back(
        fmt::format("{}-{:05d}-of-{:05d}.gguf", path.substr(0, path.size() - 5), part + 1, files));
    write_file(paths.back(), [&](const auto& append) {
      Sink sink(append);
      write_to(sink, keys.entries_, std::span(tensors_).subspan(begin, end - begin));
    });
  }
  return paths;
}

}  // namespace shoal::infer
