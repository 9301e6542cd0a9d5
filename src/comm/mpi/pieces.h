// SPDX-License-Identifier: Apache-2.0
// MPI counts are 32-bit: longer messages are cut, on both sides alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace shoal::comm::mpi {

/// 1 GiB; tests set SHOAL_LARGEST_PIECE to fewer bytes, the same on all ranks.
inline std::size_t largest_piece() {
  static const std::size_t bytes = [] {
    constexpr std::size_t gibibyte = std::size_t{1} << 30;
    const char* text = std::getenv("SHOAL_LARGEST_PIECE");
    const std::size_t wish = text ? std::strtoull(text, nullptr, 10) : gibibyte;
    return wish > 0 && wish < gibibyte ? wish : gibibyte;
  }();
  return bytes;
}

/// each(begin, length) for the pieces of `bytes`; once with length 0 when there are none.
template <class Each>
void for_pieces(std::size_t bytes, Each&& each) {
  std::size_t begin = 0;
  do {
    const std::size_t length = std::min(bytes - begin, largest_piece());
    each(begin, length);
    begin += length;
  } while (begin < bytes);
}

}  // namespace shoal::comm::mpi
