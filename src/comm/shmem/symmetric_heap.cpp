// SPDX-License-Identifier: Apache-2.0
#include "comm/shmem/symmetric_heap.h"

#include <algorithm>

namespace shoal::comm::shmem {
namespace {

constexpr std::uint64_t line = 64;

// Calls each(begin, end) for the gaps between `taken`, in order, until it returns true.
template <class Each>
void for_gaps(std::uint64_t bytes, std::vector<SymmetricHeap::Piece>& taken, Each&& each) {
  std::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::uint64_t at = 0;
  for (const SymmetricHeap::Piece& piece : taken) {
    if (piece.begin > at && each(at, piece.begin)) return;
    at = std::max(at, piece.end);
  }
  if (at < bytes) each(at, bytes);
}

}  // namespace

std::optional<std::uint64_t> SymmetricHeap::find(std::uint64_t bytes, std::vector<Piece> taken) const {
  std::optional<std::uint64_t> found;
  for_gaps(bytes_, taken, [&](std::uint64_t begin, std::uint64_t end) {
    if (end - begin >= bytes) found = begin;
    return found.has_value();
  });
  return found;
}

std::uint64_t SymmetricHeap::largest_free(std::vector<Piece> taken) const {
  std::uint64_t largest = 0;
  for_gaps(bytes_, taken, [&](std::uint64_t begin, std::uint64_t end) {
    largest = std::max(largest, end - begin);
    return false;
  });
  return largest;
}

void SymmetricHeap::take(std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t rounded = (std::max<std::uint64_t>(bytes, 1) + line - 1) / line * line;
  taken_.push_back({begin, std::min(begin + rounded, bytes_)});
}

void SymmetricHeap::give_back(std::uint64_t begin) {
  std::erase_if(taken_, [&](const Piece& piece) { return piece.begin == begin; });
}

}  // namespace shoal::comm::shmem
