// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files, version 3 (or 2, which differs in the number alone), whole or split. For tests and
// for made-up models. Tensor data is streamed: memory is one piece of one tensor, whatever the size.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/infer/gguf.h"

namespace shoal::infer {

class GgufWriter {
 public:
  /// Writes bytes [begin, begin + out.size()) of a tensor's data into `out`. Called in order of `begin`,
  /// a whole number of rows at a time, once for each time that the file is written.
  using Fill = std::function<void(std::uint64_t begin, std::span<std::byte> out)>;

  // Metadata, in the order of first setting; a key that is there already gets the new value.
  GgufWriter& set(std::string_view key, GgufValue value);
  GgufWriter& set(std::string_view key, std::string_view text);
  GgufWriter& set(std::string_view key, const char* text) { return set(key, std::string_view(text)); }
  GgufWriter& set(std::string_view key, bool value);
  GgufWriter& set(std::string_view key, float value);
  GgufWriter& set(std::string_view key, double value);
  GgufWriter& set(std::string_view key, const std::vector<std::string>& texts);
  GgufWriter& set(std::string_view key, const std::vector<float>& values);
  GgufWriter& set(std::string_view key, const std::vector<double>& values);
  /// Integers keep their C++ type: set("n", std::uint32_t{4}) writes a UINT32.
  template <std::integral T>
  GgufWriter& set(std::string_view key, T value) {
    return set(key, GgufValue{integer_type<T>(), static_cast<std::int64_t>(value)});
  }
  template <std::integral T>
  GgufWriter& set(std::string_view key, const std::vector<T>& values) {
    std::vector<std::int64_t> wide;
    for (const T value : values) wide.push_back(static_cast<std::int64_t>(value));
    return set(key, GgufValue{GgufType::array, GgufArray{integer_type<T>(), std::move(wide)}});
  }
  /// Removes a key; one that is not there is no error.
  GgufWriter& remove(std::string_view key);

  /// Alignment of tensor data, also written as general.alignment; 32 without. A power of two.
  GgufWriter& set_alignment(std::uint32_t alignment);
  GgufWriter& set_version(std::uint32_t version);

  /// Adds a tensor; shape[0] is the contiguous dimension, a multiple of the format's block unless the
  /// tensor is empty. Throws invalid_argument for a name that is there already, or an impossible shape.
  GgufWriter& add_tensor(std::string name, std::vector<std::int64_t> shape, tensor::Format format, Fill fill);
  /// The same from bytes in the format, which must be as many as the shape asks for.
  GgufWriter& add_tensor(std::string name, std::vector<std::int64_t> shape, tensor::Format format,
                         std::vector<std::byte> data);
  /// The same from floats, which are encoded.
  GgufWriter& add_tensor(std::string name, std::vector<std::int64_t> shape, tensor::Format format,
                         const std::vector<float>& values);
  GgufWriter& remove_tensor(std::string_view name);

  /// The whole file in memory.
  std::vector<std::byte> bytes() const;

  /// Writes the file. Throws Error(io) that names it.
  void write(const std::string& path) const;

  /// Writes NAME-00001-of-0000N.gguf and so on for `path` = NAME.gguf: the metadata in the first, the
  /// tensors in order, divided by number. Returns the paths.
  std::vector<std::string> write_split(const std::string& path, int files) const;

 private:
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    tensor::Format format;
    std::uint64_t bytes;
    Fill fill;
  };
  class Sink;

  template <std::integral T>
  static constexpr GgufType integer_type() {
    if constexpr (std::same_as<T, bool>) return GgufType::boolean;
    if constexpr (sizeof(T) == 1) return std::signed_integral<T> ? GgufType::int8 : GgufType::uint8;
    if constexpr (sizeof(T) == 2) return std::signed_integral<T> ? GgufType::int16 : GgufType::uint16;
    if constexpr (sizeof(T) == 4) return std::signed_integral<T> ? GgufType::int32 : GgufType::uint32;
    return std::signed_integral<T> ? GgufType::int64 : GgufType::uint64;
  }

  void write_to(Sink& sink, std::span<const GgufEntry> entries, std::span<const Tensor> tensors) const;

  std::uint32_t version_ = 3;
  std::uint32_t alignment_ = 32;
  std::vector<GgufEntry> entries_;
  std::vector<Tensor> tensors_;
};

}  // namespace shoal::infer
