// SPDX-License-Identifier: Apache-2.0
#include "solver/space.h"

namespace shoal::solver {

void Reducer::take(std::initializer_list<LocalSum> sums) {
  std::size_t i = 0;
  for (const LocalSum& sum : sums) {
    split_[i] = sum.split;
    replicated_[i++] = sum.replicated;
  }
}

template <class T>
Space<T>::Space(const Layout& layout, Rank rank) {
  add_parts(layout, rank);
}

template <class T>
void Space<T>::add_parts(const Layout& layout, Rank rank) {
  for (const Layout& member : layout.members()) add_parts(member, rank);
  if (layout.is_stack()) return;
  const std::size_t count = static_cast<std::size_t>(layout.local_size(rank)) * reals_each<T>;
  const bool replicated = layout.is_replicated();
  any_split_ = any_split_ || !replicated;
  // Neighbours of one kind are one part.
  if (!parts_.empty() && parts_.back().replicated == replicated)
    parts_.back().count += count;
  else
    parts_.push_back({count_, count, replicated});
  count_ += count;
}

template class Space<float>;
template class Space<double>;
template class Space<std::complex<float>>;
template class Space<std::complex<double>>;

}  // namespace shoal::solver
