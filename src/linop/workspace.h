// SPDX-License-Identifier: Apache-2.0
// An array that an operator makes at its first application and keeps.
#pragma once

#include <optional>

#include "shoal/array/distributed_array.h"

namespace shoal::linop {

template <class T>
class Workspace {
 public:
  /// Always with the same arguments; the elements are whatever they were.
  array::DistributedArray<T>& get(const comm::Communicator& communicator, const array::Layout& layout) {
    if (!array_) array_.emplace(communicator, layout, array::uninitialised);
    return *array_;
  }

 private:
  std::optional<array::DistributedArray<T>> array_;
};

}  // namespace shoal::linop
