// SPDX-License-Identifier: Apache-2.0
// What the tests of model files share: bytes put together by hand, temporary folders, expected errors.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/infer/gguf.h"

namespace shoal::infer::testing {

/// Bytes of a file, written field by field, so that any of them can be wrong.
class Bytes {
 public:
  template <class T>
  Bytes& number(T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    data_.insert(data_.end(), raw, raw + sizeof(T));
    return *this;
  }
  Bytes& u32(std::uint32_t value) { return number(value); }
  Bytes& u64(std::uint64_t value) { return number(value); }
  Bytes& raw(std::string_view text) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    data_.insert(data_.end(), bytes, bytes + text.size());
    return *this;
  }
  Bytes& string(std::string_view text) { return u64(text.size()).raw(text); }
  Bytes& zeros(std::size_t count) {
    data_.resize(data_.size() + count);
    return *this;
  }
  Bytes& pad(std::size_t alignment) { return zeros((alignment - data_.size() % alignment) % alignment); }

  /// Magic, version 3 and the two counts.
  static Bytes header(std::uint64_t tensors, std::uint64_t keys) {
    Bytes bytes;
    bytes.raw("GGUF").u32(3).u64(tensors).u64(keys);
    return bytes;
  }
  Bytes& u32_key(std::string_view key, std::uint32_t value) {
    return string(key).u32(static_cast<std::uint32_t>(GgufType::uint32)).u32(value);
  }
  Bytes& tensor(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                std::uint64_t offset) {
    string(name).u32(static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t size : shape) u64(size);
    return u32(type).u64(offset);
  }

  const std::vector<std::byte>& data() const { return data_; }

 private:
  std::vector<std::byte> data_;
};

inline GgufHeader parse(std::span<const std::byte> bytes) {
  return parse_gguf(bytes, bytes.size(), "file.gguf");
}

/// Runs `body`, which must throw an Error of `code` whose message holds all of `parts` on one line.
template <class Body>
void expect_error(ErrorCode code, const std::vector<std::string>& parts, const Body& body) {
  try {
    body();
    ADD_FAILURE() << "accepted; expected an error with '" << (parts.empty() ? "" : parts.front()) << "'";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(std::string(to_string(error.code())), to_string(code)) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

inline void expect_refused(const Bytes& bytes, ErrorCode code, const std::vector<std::string>& parts) {
  expect_error(code, parts, [&] { parse(bytes.data()); });
}

/// A folder that is gone after the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "shoal-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) fail(ErrorCode::io, "cannot make a temporary folder");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good()) << path;
}

inline std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace shoal::infer::testing
