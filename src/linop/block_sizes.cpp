// SPDX-License-Identifier: Apache-2.0
#include "linop/block_sizes.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "shoal/base/error.h"

namespace shoal::linop {
namespace {

struct RankSizes {
  Index blocks = 0, rows = 0, cols = 0;  // sums
  Index first = 0, other = 0;            // cols of the first block, and of the first that differs from it
};
constexpr std::size_t fields = 5;

template <class T>
std::vector<RankSizes> gather(const comm::Communicator& communicator,
                              const std::vector<AnyLocalOperator<T>>& blocks) {
  RankSizes mine;
  if (!blocks.empty()) mine.first = mine.other = blocks.front().cols();
  for (const AnyLocalOperator<T>& block : blocks) {
    ++mine.blocks;
    mine.rows += block.rows();
    mine.cols += block.cols();
    if (mine.other == mine.first) mine.other = block.cols();
  }
  comm::Communicator group = communicator;
  const auto ranks = static_cast<std::size_t>(group.size());
  const std::array<Index, fields> sent{mine.blocks, mine.rows, mine.cols, mine.first, mine.other};
  std::vector<Index> received(fields * ranks);
  group.all_gather(sent, received, std::vector<Index>(ranks, fields));
  std::vector<RankSizes> all;
  for (std::size_t at = 0; at < received.size(); at += fields)
    all.push_back({received[at], received[at + 1], received[at + 2], received[at + 3], received[at + 4]});
  return all;
}

BlockSizes sums(const std::vector<RankSizes>& all) {
  BlockSizes sizes;
  for (const RankSizes& rank : all) {
    sizes.rows.push_back(rank.rows);
    sizes.cols.push_back(rank.cols);
  }
  return sizes;
}

Index equal_width(const std::vector<RankSizes>& all, const char* what) {
  std::size_t first = 0;
  while (first < all.size() && all[first].blocks == 0) ++first;
  if (first == all.size())
    fail(ErrorCode::invalid_argument,
         fmt::format("{} has no block on any rank; give one to at least one rank", what));
  const Index width = all[first].first;
  for (std::size_t rank = first; rank < all.size(); ++rank) {
    if (all[rank].blocks == 0) continue;
    for (const Index other : {all[rank].first, all[rank].other})
      if (other != width)
        fail(ErrorCode::invalid_argument,
             fmt::format("{} needs blocks of equal size on that side: {} on rank {}, but {} on rank {}", what,
                         width, first, other, rank));
  }
  return width;
}

}  // namespace

template <class T>
BlockSizes gather_sizes(const comm::Communicator& communicator,
                        const std::vector<AnyLocalOperator<T>>& blocks) {
  return sums(gather(communicator, blocks));
}

template <class T>
BlockSizes gather_equal_widths(const comm::Communicator& communicator,
                               const std::vector<AnyLocalOperator<T>>& blocks, const char* what) {
  const std::vector<RankSizes> all = gather(communicator, blocks);
  BlockSizes sizes = sums(all);
  sizes.width = equal_width(all, what);
  return sizes;
}

#define SHOAL_INSTANTIATE(T)                                                                            \
  template BlockSizes gather_sizes(const comm::Communicator&, const std::vector<AnyLocalOperator<T>>&); \
  template BlockSizes gather_equal_widths(const comm::Communicator&,                                    \
                                          const std::vector<AnyLocalOperator<T>>&, const char*);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
