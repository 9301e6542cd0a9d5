// SPDX-License-Identifier: Apache-2.0
#include "shoal/base/view.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "shoal/base/error.h"

namespace shoal {

StridedBuffer::StridedBuffer(const Buffer& contiguous) : buffer(contiguous), dims(1) {
  extent[0] = contiguous.count;
  stride[0] = 1;
}

StridedBuffer::StridedBuffer(const Buffer& element, std::span<const std::int64_t> extents,
                             std::span<const std::int64_t> strides)
    : buffer(element), dims(extents.size()) {
  if (extents.size() != strides.size() || dims > max_dims)
    fail(ErrorCode::invalid_argument,
         "strided view: " + std::to_string(dims) + " extents and " + std::to_string(strides.size()) +
             " strides, where as many are needed of both, and " + std::to_string(max_dims) + " at most");
  std::ranges::copy(extents, extent.begin());
  std::ranges::copy(strides, stride.begin());
  buffer.count = 1;
  for (std::size_t d = 0; d < dims; ++d)
    if (extent[d] < 0)
      fail(ErrorCode::invalid_argument,
           "strided view: extent[" + std::to_string(d) + "] is " + std::to_string(extent[d]));
  if (std::ranges::count(extents, 0) > 0) buffer.count = 0;
  for (std::size_t d = 0; d < dims; ++d)
    if (__builtin_mul_overflow(buffer.count, extent[d], &buffer.count))
      fail(ErrorCode::invalid_argument, "strided view: more elements than 64 bits count");
}

bool StridedBuffer::contiguous() const {
  std::int64_t step = 1;
  for (std::size_t d = dims; d-- > 0; step *= extent[d])
    if (extent[d] != 1 && stride[d] != step && buffer.count > 0) return false;
  return true;
}

namespace {

// Calls run(first element, length, stride in bytes) for each line along the last dimension, in index order.
template <class Run>
void for_lines(const StridedBuffer& view, Run&& run) {
  if (view.buffer.count == 0) return;
  const auto element = static_cast<std::int64_t>(size_of(view.buffer.dtype));
  auto* place = static_cast<std::byte*>(view.buffer.data);
  if (view.dims == 0) return run(place, std::int64_t{1}, element);
  const std::size_t last = view.dims - 1;
  std::array<std::int64_t, StridedBuffer::max_dims> index{};
  for (;;) {
    run(place, view.extent[last], view.stride[last] * element);
    std::size_t d = last;
    while (d > 0 && index[d - 1] == view.extent[d - 1] - 1) {
      place -= index[d - 1] * view.stride[d - 1] * element;
      index[--d] = 0;
    }
    if (d == 0) return;
    ++index[d - 1];
    place += view.stride[d - 1] * element;
  }
}

// `size` bytes each, known to the compiler, so that a copy is a load and a store.
template <std::size_t size>
void copy_line(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
               std::int64_t length) {
  for (std::int64_t i = 0; i < length; ++i) std::memcpy(to + i * to_step, from + i * from_step, size);
}

void copy_line(std::size_t size, std::byte* to, std::int64_t to_step, const std::byte* from,
               std::int64_t from_step, std::int64_t length) {
  const auto packed = static_cast<std::int64_t>(size);
  if (to_step == packed && from_step == packed) {
    std::memcpy(to, from, size * static_cast<std::size_t>(length));
    return;
  }
  switch (size) {
    case 1: return copy_line<1>(to, to_step, from, from_step, length);
    case 2: return copy_line<2>(to, to_step, from, from_step, length);
    case 4: return copy_line<4>(to, to_step, from, from_step, length);
    case 8: return copy_line<8>(to, to_step, from, from_step, length);
    case 16: return copy_line<16>(to, to_step, from, from_step, length);
    default: fail(ErrorCode::unsupported, "strided view: elements of " + std::to_string(size) + " bytes");
  }
}

}  // namespace

void pack(const StridedBuffer& from, void* to) {
  auto* place = static_cast<std::byte*>(to);
  const auto element = static_cast<std::int64_t>(size_of(from.buffer.dtype));
  for_lines(from, [&](const std::byte* line, std::int64_t length, std::int64_t step) {
    copy_line(static_cast<std::size_t>(element), place, element, line, step, length);
    place += length * element;
  });
}

void unpack(const void* from, const StridedBuffer& to) {
  const auto* place = static_cast<const std::byte*>(from);
  const auto element = static_cast<std::int64_t>(size_of(to.buffer.dtype));
  for_lines(to, [&](std::byte* line, std::int64_t length, std::int64_t step) {
    copy_line(static_cast<std::size_t>(element), line, step, place, element, length);
    place += length * element;
  });
}

}  // namespace shoal
