// SPDX-License-Identifier: Apache-2.0
// Views of elements, contiguous or with strides, that say where their memory lives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
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

/// Elements at data + sum of index[d] * stride[d], in elements; in the order of the indices, the last one
/// fastest. `buffer` has the element (0, ..., 0) and the number of all elements.
struct StridedBuffer {
  static constexpr std::size_t max_dims = 8;
  Buffer buffer{};
  std::size_t dims = 0;
  std::array<std::int64_t, max_dims> extent{};
  std::array<std::int64_t, max_dims> stride{};

  StridedBuffer() = default;
  /// A contiguous buffer, as one dimension.
  StridedBuffer(const Buffer& contiguous);
  /// `element` has data, dtype and space. Throws invalid_argument for more than max_dims dimensions, extents
  /// and strides of different number, a negative extent or more elements than 64 bits count.
  StridedBuffer(const Buffer& element, std::span<const std::int64_t> extents,
                std::span<const std::int64_t> strides);
  /// True where the elements lie one after the other in the order of the indices.
  bool contiguous() const;
};

/// Copies the elements to or from memory where they lie one after the other. Host memory only.
void pack(const StridedBuffer& from, void* to);
void unpack(const void* from, const StridedBuffer& to);

/// An array of up to StridedBuffer::max_dims dimensions whose neighbours are not neighbours in memory: a
/// column, every second element, a transpose. Strides are in elements and may be negative; `data` is the
/// element with all indices 0. For a row-major a of 4 x 6:
///   StridedView(a, {4, 3}, {6, 2})        a[:, ::2]
///   StridedView(a + 18, {4, 6}, {-6, 1})  a[::-1]
///   StridedView(a, {6, 4}, {1, 6})        the transpose
template <class T>
class StridedView {
 public:
  using Numbers = std::initializer_list<std::int64_t>;
  StridedView(T* data, std::span<const std::int64_t> extents, std::span<const std::int64_t> strides,
              MemorySpace space = MemorySpace::host)
      : erased_(erase(View<T>(data, 0, space)), extents, strides) {}
  StridedView(T* data, Numbers extents, Numbers strides, MemorySpace space = MemorySpace::host)
      : StridedView(data, std::span(extents.begin(), extents.size()),
                    std::span(strides.begin(), strides.size()), space) {}

  T* data() const { return static_cast<T*>(erased_.buffer.data); }
  std::size_t size() const { return static_cast<std::size_t>(erased_.buffer.count); }
  const StridedBuffer& erased() const { return erased_; }

 private:
  StridedBuffer erased_;
};

template <class T>
Buffer erase(const StridedView<T>& view) {
  return view.erased().buffer;
}

}  // namespace shoal
