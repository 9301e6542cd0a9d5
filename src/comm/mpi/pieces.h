// SPDX-License-Identifier: Apache-2.0
// MPI counts are 32-bit: longer messages are cut, on both sides alike.
#pragma once

#include <algorithm>
#include <cstddef>

namespace shoal::comm::mpi {

inline constexpr std::size_t largest_piece = std::size_t{1} << 30;

/// each(begin, length) for the pieces of `bytes`; once with length 0 when there are none.
template <class Each>
void for_pieces(std::size_t bytes, Each&& each) {
  std::size_t begin = 0;
  do {
    const std::size_t length = std::min(bytes - begin, largest_piece);
    each(begin, length);
    begin += length;
  } while (begin < bytes);
}

}  // namespace shoal::comm::mpi
