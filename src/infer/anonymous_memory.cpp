// SPDX-License-Identifier: Apache-2.0
// Anonymous memory by mmap.
#include "shoal/infer/anonymous_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "shoal/base/error.h"

namespace shoal::infer {

AnonymousMemory::AnonymousMemory(std::uint64_t bytes, std::string_view purpose) {
  if (bytes == 0) return;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    fail(ErrorCode::out_of_memory, fmt::format("{} needs {} bytes, which the system refused: {}", purpose,
                                               bytes, std::strerror(errno)));
#ifdef MADV_HUGEPAGE
  // Weights are streamed once a token; fewer TLB misses are worth asking for, and refusal is harmless.
  constexpr std::uint64_t huge_page_bytes = 2u << 20;
  if (bytes >= 4 * huge_page_bytes) (void)::madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
}

AnonymousMemory::~AnonymousMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

AnonymousMemory::AnonymousMemory(AnonymousMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AnonymousMemory& AnonymousMemory::operator=(AnonymousMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace shoal::infer
