// SPDX-License-Identifier: Apache-2.0
// Memory on a boundary of cache lines.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace shoal::linop {

template <class T>
class CacheBuffer {
 public:
  explicit CacheBuffer(std::size_t size)
      : data_(static_cast<T*>(std::aligned_alloc(64, (size * sizeof(T) + 127) / 64 * 64)), std::free) {}
  T* data() const { return data_.get(); }

 private:
  std::unique_ptr<T, decltype(&std::free)> data_;
};

}  // namespace shoal::linop
