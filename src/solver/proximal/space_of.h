// SPDX-License-Identifier: Apache-2.0
// The space of the arrays that a function is given, which may be of any layout: made for the first, kept for
// those that follow.
#pragma once

#include <algorithm>
#include <optional>

#include "solver/space.h"

namespace shoal::solver {

template <class T>
class SpaceOf {
 public:
  const Space<T>& operator()(const DistributedArray<T>& x) {
    if (!layout_ || !(*layout_ == x.layout())) {
      space_.emplace(x.layout(), x.rank());
      layout_ = x.layout();
    }
    return *space_;
  }

 private:
  std::optional<Layout> layout_;
  std::optional<Space<T>> space_;
};

/// `term(pointer to elements, their number)` summed over this rank's elements, in pieces that stay in the
/// cache.
template <class T, class Term>
LocalSum sum_elements(const Space<T>& space, const DistributedArray<T>& x, const Term& term) {
  constexpr std::size_t reals_per_element = is_complex<T> ? 2 : 1, piece = 2048;
  return space.sum([&](std::size_t first, std::size_t count) {
    const T* const elements = x.local().data() + first / reals_per_element;
    const std::size_t n = count / reals_per_element;
    double sum = 0;
    for (std::size_t i = 0; i < n; i += piece) sum += term(elements + i, std::min(piece, n - i));
    return sum;
  });
}

template <class T>
void copy_elements(const DistributedArray<T>& x, DistributedArray<T>& out) {
  if (&x != &out) std::ranges::copy(x.local(), out.local().begin());
}

}  // namespace shoal::solver
