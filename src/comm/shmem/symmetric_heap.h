// SPDX-License-Identifier: Apache-2.0
// Who holds what of the symmetric memory. The library's own allocator is collective over all PEs, so
// it is asked once, for everything; groups then agree among themselves: they take the first piece that
// is free on all their members. Giving back is local.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shoal::comm::shmem {

class SymmetricHeap {
 public:
  struct Piece {
    std::uint64_t begin;
    std::uint64_t end;
  };

  explicit SymmetricHeap(std::uint64_t bytes) : bytes_(bytes) {}

  std::uint64_t bytes() const { return bytes_; }
  const std::vector<Piece>& taken() const { return taken_; }

  /// Begin of the first `bytes` (rounded up to whole cache lines) that none of `taken` overlaps.
  std::optional<std::uint64_t> find(std::uint64_t bytes, std::vector<Piece> taken) const;
  /// Largest free piece beside `taken`.
  std::uint64_t largest_free(std::vector<Piece> taken) const;

  void take(std::uint64_t begin, std::uint64_t bytes);
  void give_back(std::uint64_t begin);

 private:
  std::uint64_t bytes_;
  std::vector<Piece> taken_;
};

}  // namespace shoal::comm::shmem
