// SPDX-License-Identifier: Apache-2.0
#include "shoal/array/streaming.h"

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shoal::array {
namespace {

Index beyond_line(const void* address) {
  return static_cast<Index>(reinterpret_cast<std::uintptr_t>(address) % 64);
}

// Stores of 64 bytes write a line at once; four of 16 reach three quarters of their bandwidth.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) void stream_by_64(char* to, const char* from, Index bytes) {
  for (Index i = 0; i < bytes; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
}

void stream_by_16(char* to, const char* from, Index bytes) {
  for (Index i = 0; i < bytes; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
}

void stream(char* to, const char* from, Index bytes) {
  static const bool has_64 = __builtin_cpu_supports("avx512f") != 0;
  if (has_64 && beyond_line(to) == 0)
    stream_by_64(to, from, bytes);
  else
    stream_by_16(to, from, bytes);
}
#else
void stream(char* to, const char* from, Index bytes) { std::copy_n(from, bytes, to); }
#endif

}  // namespace

void stream_lines(void* to, const void* from, Index bytes) {
  stream(static_cast<char*>(to), static_cast<const char*>(from), bytes);
}

template <class R>
StreamWriter<R>::StreamWriter() : memory_(static_cast<std::size_t>(capacity + line)) {
  const Index over = beyond_line(memory_.data()) / static_cast<Index>(sizeof(R));
  buffer_ = memory_.data() + (over == 0 ? 0 : line - over);
}

// Stores the elements up to `end`, a multiple of the line or the end of what is there.
template <class R>
void StreamWriter<R>::store(Index end) {
  if (end == begin_) return;
  const Index first_line = std::min(end, (begin_ + line - 1) / line * line);
  const Index last_line = std::max(first_line, end / line * line);
  std::copy(buffer_ + begin_, buffer_ + first_line, base_ + begin_);
  stream_lines(base_ + first_line, buffer_ + first_line,
               (last_line - first_line) * static_cast<Index>(sizeof(R)));
  std::copy(buffer_ + last_line, buffer_ + end, base_ + last_line);
}

template <class R>
void StreamWriter<R>::make_room(R* to, Index n) {
  if (base_ != nullptr && to == base_ + end_ && end_ - begin_ >= line) {
    // Full: all whole lines go, what is left of the last one moves to the front.
    const Index end = end_ / line * line;
    store(end);
    std::copy(buffer_ + end, buffer_ + end_, buffer_);
    base_ += end;
    begin_ = 0;
    end_ -= end;
  }
  if (to != base_ + end_ || end_ + n > capacity) {
    store(end_);
    begin_ = end_ = beyond_line(to) / static_cast<Index>(sizeof(R));
    base_ = to - begin_;
  }
}

// All lines but the first and the last go straight to memory.
template <class R>
void StreamWriter<R>::copy_long(R* to, const R* from, Index n) {
  const Index over = beyond_line(to) / static_cast<Index>(sizeof(R));
  const Index head = over == 0 ? 0 : line - over, lines = (n - head) / line * line;
  std::copy_n(from, head, reserve(to, head));
  store(end_);
  begin_ = end_;
  stream_lines(to + head, from + head, lines * static_cast<Index>(sizeof(R)));
  const Index tail = n - head - lines;
  std::copy_n(from + head + lines, tail, reserve(to + head + lines, tail));
}

template <class R>
void StreamWriter<R>::flush() {
  store(end_);
  begin_ = end_;
#if defined(__x86_64__)
  _mm_sfence();  // before other ranks are told that the elements are there
#endif
}

template class StreamWriter<float>;
template class StreamWriter<double>;

}  // namespace shoal::array
