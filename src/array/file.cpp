// SPDX-License-Identifier: Apache-2.0
#include "array/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::array {
namespace {

int flags_of(File::Mode mode) {
  switch (mode) {
    case File::Mode::read: return O_RDONLY;
    case File::Mode::create: return O_RDWR | O_CREAT | O_TRUNC;
    case File::Mode::write: break;
  }
  return O_RDWR;
}

}  // namespace

File::File(const std::string& path, Mode mode) : path_(path) {
  constexpr mode_t permissions = 0666;  // less what the user's mask takes away
  descriptor_ = ::open(path.c_str(), flags_of(mode) | O_CLOEXEC, permissions);
  if (descriptor_ < 0) refuse(mode == Mode::create ? "cannot be created" : "cannot be opened");
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor_);
    fail(ErrorCode::io, fmt::format("{}: is a folder", path));
  }
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void File::refuse(const char* what) const {
  fail(ErrorCode::io, fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
}

std::uint64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) refuse("its size cannot be read");
  return static_cast<std::uint64_t>(status.st_size);
}

void File::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, next, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse("cannot be read");
    if (got == 0)
      fail(ErrorCode::format, fmt::format("{}: ends at byte {}, before it should", path_, offset));
    next += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

void File::write(std::uint64_t offset, const void* from, std::size_t bytes) const {
  const auto* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = ::pwrite(descriptor_, next, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse("cannot be written");
    next += put;
    offset += static_cast<std::uint64_t>(put);
    bytes -= static_cast<std::size_t>(put);
  }
}

void File::resize(std::uint64_t bytes) const {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
    refuse("cannot be made as long as it has to be");
}

void File::close() {
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) refuse("cannot be written");
}

void rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    fail(ErrorCode::io, fmt::format("{}: cannot take the place of {}: {}", from, to, std::strerror(errno)));
}

void remove_file(const std::string& path) noexcept { (void)std::remove(path.c_str()); }

}  // namespace shoal::array
