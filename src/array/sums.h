// SPDX-License-Identifier: Apache-2.0
// Sums over arrays: what is split is summed among ranks in their order; what is replicated is added
// afterwards.
#pragma once

#include <span>

#include "array/local_parts.h"
#include "shoal/comm/communicator.h"

namespace shoal::array {

// A sum over an array: of the elements that are split, and of those that every rank holds.
template <class W>
struct Sum {
  W split{}, replicated{};
  bool any_split = false;
};

// term(first, count) is the sum over these local elements.
template <class W, class Term>
Sum<W> local_sum(const Layout& layout, Rank rank, const Term& term) {
  Sum<W> sum;
  for_each_part(layout, rank, [&](const Layout& part, std::size_t first, std::size_t count) {
    sum.any_split = sum.any_split || !part.is_replicated();
    (part.is_replicated() ? sum.replicated : sum.split) += term(first, count);
  });
  return sum;
}

template <class W>
W global_sum(const Sum<W>& sum, const comm::Communicator& communicator) {
  W total = sum.split;
  if (sum.any_split) {
    comm::Communicator c = communicator;
    c.all_reduce(std::span<W>(&total, 1), comm::Reduction::sum);
  }
  return total + sum.replicated;
}

}  // namespace shoal::array
