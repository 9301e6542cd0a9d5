// SPDX-License-Identifier: Apache-2.0
// A file that is read and written at given places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace shoal::array {

/// Errors are thrown as io, naming the path.
class File {
 public:
  enum class Mode { read, create, write };  // create: a new one in place of any other; write: one that exists

  File(const std::string& path, Mode mode);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const;
  void read(std::uint64_t offset, void* to, std::size_t bytes) const;
  void write(std::uint64_t offset, const void* from, std::size_t bytes) const;
  void resize(std::uint64_t bytes) const;
  /// Some file systems tell only here that a write has failed.
  void close();

 private:
  [[noreturn]] void refuse(const char* what) const;
  std::string path_;
  int descriptor_ = -1;
};

/// Throws as File does.
void rename_file(const std::string& from, const std::string& to);
void remove_file(const std::string& path) noexcept;

}  // namespace shoal::array
