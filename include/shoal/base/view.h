// SPDX-License-Identifier: Apache-2.0
// Views of contiguous elements that say where their memory lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

#include "shoal/base/dtype.h"

namespace shoal {

enum class MemorySpace : std::uint8_t { host, device };

/// A std::span with a memory space. Anything contiguous on the host converts to it.
template <class T>
class View {
 public:
  constexpr View() = default;
  constexpr View(T* data, std::size_t size, MemorySpace space = MemorySpace::host)
      : data_(data), size_(size), space_(space) {}
  template <class Range>
  requires std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
      (!std::is_same_v<std::remove_cvref_t<Range>, View>)&&std::is_convertible_v<
          std::remove_reference_t<std::ranges::range_reference_t<Range>> (*)[],
          T (*)[]> constexpr View(Range&& range)
      : data_(std::ranges::data(range)), size_(std::ranges::size(range)) {}
  constexpr operator View<const T>() const requires(!std::is_const_v<T>) { return {data_, size_, space_}; }

  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr MemorySpace space() const { return space_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  MemorySpace space_ = MemorySpace::host;
};

/// A view with its element type erased. `count` is in elements.
struct Buffer {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::uint8;
  MemorySpace space = MemorySpace::host;

  std::size_t bytes() const { return static_cast<std::size_t>(count) * size_of(dtype); }
};

template <class T>
Buffer erase(View<T> view) {
  return {const_cast<std::remove_const_t<T>*>(view.data()), static_cast<std::int64_t>(view.size()),
          dtype_of<T>, view.space()};
}

}  // namespace shoal
