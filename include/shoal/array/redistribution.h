// SPDX-License-Identifier: Apache-2.0
// The same array in another layout, and in another shape.
#pragma once

#include <memory>

#include "shoal/array/distributed_array.h"

namespace shoal::array {

/// Moves arrays from one layout to another of the same shape by one all_to_all of exact parts. What goes
/// where is worked out once, from the layouts alone; memory for packing is kept, so run() allocates nothing.
/// Parts that lie in one piece are not packed (slabs along the first axis, on either side). Not for stacks.
template <class T>
class Redistribution {
 public:
  Redistribution(const comm::Communicator& communicator, const Layout& from, const Layout& to);
  ~Redistribution();
  Redistribution(Redistribution&&) noexcept;
  Redistribution& operator=(Redistribution&&) noexcept;

  /// Collective (local where the layouts are equal, or `from` is replicated). `y` must not share memory with
  /// `x`.
  void run(const DistributedArray<T>& x, DistributedArray<T>& y);

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

/// Collective: a copy of `x` in layout `to`.
template <class T>
DistributedArray<T> redistribute(const DistributedArray<T>& x, const Layout& to);

/// Collective: the global array in C order as one axis, split in balance (or replicated as `x` was).
template <class T>
DistributedArray<T> ravel(const DistributedArray<T>& x);
/// Collective: element k of the C order of `x` becomes element k of the C order of `to`, whose size must be
/// equal.
template <class T>
DistributedArray<T> reshape(const DistributedArray<T>& x, const Layout& to);

}  // namespace shoal::array
