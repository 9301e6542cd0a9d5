// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one host share, without names: an anonymous memory file that peers open
// through /proc/PID/fd. So nothing can be left behind in /dev/shm, whatever ends the job, and giving it
// back is local (an MPI shared window would need a collective call for both).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace shoal::comm {

/// A mapping of shared memory; unmapped by the destructor.
class HostMemory {
 public:
  /// What a peer needs to map this memory; plain bytes, to be sent.
  struct Handle {
    std::int64_t process = 0;
    std::int64_t file = -1;
    std::uint64_t bytes = 0;
    std::uint64_t device = 0;  // device and inode tell whether the file found is the one meant
    std::uint64_t inode = 0;
  };

  HostMemory() = default;
  ~HostMemory();
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;

  /// New memory, zeroed, page-aligned; null when there is none (empty()).
  static HostMemory create(std::size_t bytes);
  /// Maps a peer's memory; empty() when it cannot be reached from here.
  static HostMemory open(const Handle& handle);

  bool empty() const { return data_ == nullptr; }
  std::byte* data() const { return data_; }
  Handle handle() const;
  /// After all peers have mapped it.
  void close_file();

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  int file_ = -1;
};

/// Bytes of memory that this host could give to a new allocation now. (Memory files are filled page by
/// page: one that is larger than this is made without complaint, and ends in a kill.)
std::uint64_t available_memory();

/// Equal for two processes that can share memory: host name and process namespace.
std::string host_identity();
std::string host_name();

}  // namespace shoal::comm
