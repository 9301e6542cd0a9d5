// SPDX-License-Identifier: Apache-2.0
// How the parts of ranks and of members lie in memory.
#pragma once

#include <cstddef>
#include <span>

#include "shoal/array/layout.h"

namespace shoal::array {

/// Whether the parts of all ranks, one after the other, are the global array in C order. Not for stacks.
inline bool is_in_rank_order(const Layout& layout) {
  const std::optional<int> axis = layout.split_axis();
  return axis && size_of_shape(std::span(layout.shape()).first(static_cast<std::size_t>(*axis))) <= 1;
}

/// Calls visit(layout, first, count) for each member that is no stack, or for the layout itself: where its
/// elements lie in the local memory of `rank`. Returns the end.
template <class Visit>
std::size_t for_each_part(const Layout& layout, Rank rank, const Visit& visit, std::size_t first = 0) {
  if (!layout.is_stack()) {
    const auto count = static_cast<std::size_t>(layout.local_size(rank));
    visit(layout, first, count);
    return first + count;
  }
  for (const Layout& member : layout.members()) first = for_each_part(member, rank, visit, first);
  return first;
}

}  // namespace shoal::array
