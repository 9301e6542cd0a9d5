// SPDX-License-Identifier: Apache-2.0
// Many communicators, made, used and dropped one after the other.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "comm/resident_bytes.h"
#include "shoal/comm/communicator.h"
#include "shoal/comm/symmetric_segments.h"

namespace shoal::comm {

/// By split, subset and duplicate in turn; every tenth has segments, which in all are more than there is room
/// for. Returns by how many bytes this process grew, not counting the first tenth, which fills what is kept
/// for reuse.
inline std::int64_t growth_by_communicators(Communicator& comm, int number) {
  std::vector<Rank> reversed;
  for (Rank r = comm.size(); r-- > 0;) reversed.push_back(r);
  std::int64_t before = 0;
  for (int i = 0; i < number; ++i) {
    if (i == number / 10) before = resident_bytes();
    Communicator made = i % 3 == 0   ? *comm.split(0, -comm.rank())
                        : i % 3 == 1 ? comm.subset(reversed)
                                     : comm.duplicate();
    if (i % 10 == 0) SymmetricSegments<std::int64_t>(made, 1024);
    if (made.all_reduce(1, Reduction::sum) != comm.size()) throw std::runtime_error("a wrong sum");
  }
  comm.barrier();
  return resident_bytes() - before;
}

}  // namespace shoal::comm
