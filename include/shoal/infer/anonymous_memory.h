// SPDX-License-Identifier: Apache-2.0
// One block of anonymous memory straight from the operating system: page-aligned, zero, of the exact
// size, and using physical memory only for what has been touched. Weights, KV caches and scratch live in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shoal::infer {

class AnonymousMemory {
 public:
  AnonymousMemory() = default;
  /// Throws Error (out_of_memory) that says what the memory was for ("the KV cache", ...).
  AnonymousMemory(std::uint64_t bytes, std::string_view purpose);
  ~AnonymousMemory();
  AnonymousMemory(AnonymousMemory&& other) noexcept;
  AnonymousMemory& operator=(AnonymousMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace shoal::infer
