// SPDX-License-Identifier: Apache-2.0
#include "comm/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace shoal::comm {

HostMemory::~HostMemory() {
  if (data_) munmap(data_, bytes_);
  close_file();
}

HostMemory::HostMemory(HostMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      file_(std::exchange(other.file_, -1)) {}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(file_, other.file_);
  return *this;
}

HostMemory HostMemory::create(std::size_t bytes) {
  HostMemory memory;
  memory.bytes_ = std::max<std::size_t>(bytes, 1);
  memory.file_ = memfd_create("shoal", MFD_CLOEXEC);
  if (memory.file_ < 0 || ftruncate(memory.file_, static_cast<off_t>(memory.bytes_)) != 0) return {};
  void* data = mmap(nullptr, memory.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file_, 0);
  if (data == MAP_FAILED) return {};
  memory.data_ = static_cast<std::byte*>(data);
  return memory;
}

HostMemory HostMemory::open(const Handle& handle) {
  if (std::getenv("SHOAL_NO_HOST_MEMORY")) return {};  // as on a system that does not allow it
  HostMemory memory;
  memory.bytes_ = handle.bytes;
  memory.file_ =
      ::open(fmt::format("/proc/{}/fd/{}", handle.process, handle.file).c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (memory.file_ < 0 || fstat(memory.file_, &status) != 0 || status.st_ino != handle.inode ||
      status.st_dev != handle.device)
    return {};
  void* data = mmap(nullptr, memory.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file_, 0);
  if (data == MAP_FAILED) return {};
  memory.data_ = static_cast<std::byte*>(data);
  memory.close_file();
  return memory;
}

HostMemory::Handle HostMemory::handle() const {
  struct stat status {};
  fstat(file_, &status);
  return {getpid(), file_, bytes_, status.st_dev, status.st_ino};
}

void HostMemory::close_file() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

namespace {

// What the control group of this process (version 2: containers, Slurm) leaves.
std::uint64_t group_limit() {
  constexpr auto none = std::numeric_limits<std::uint64_t>::max();
  std::string line;
  std::getline(std::ifstream("/proc/self/cgroup"), line);
  if (!line.starts_with("0::")) return none;
  const std::string folder = "/sys/fs/cgroup" + line.substr(3);
  std::uint64_t limit = 0, used = 0;
  if (!(std::ifstream(folder + "/memory.max") >> limit) ||
      !(std::ifstream(folder + "/memory.current") >> used))
    return none;  // "max", or no such file
  return limit > used ? limit - used : 0;
}

}  // namespace

std::uint64_t available_memory() {
  std::uint64_t available = group_limit();
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("MemAvailable:"))
      available = std::min<std::uint64_t>(available, std::strtoull(line.c_str() + 13, nullptr, 10) * 1024);
  return available;
}

std::string host_name() {
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string host_identity() {
  char name[64] = "";
  const ssize_t length = readlink("/proc/self/ns/pid", name, sizeof name - 1);
  std::string boot;  // tells machines of one name apart
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return host_name() + "/" + boot + "/" +
         std::string(name, length > 0 ? static_cast<std::size_t>(length) : 0);
}

}  // namespace shoal::comm
