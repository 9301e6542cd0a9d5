// SPDX-License-Identifier: Apache-2.0
#include "linop/stencil_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "shoal/array/simd.h"

namespace shoal::linop {
namespace {

namespace simd = array::simd;

// `n` >= lanes. The last vector ends with the range and may repeat what the one before it has done.
template <class R, class Step>
SHOAL_INLINE void for_each_vector(Index n, const Step& step) {
  constexpr Index lanes = simd::lanes;
  Index i = 0;
  for (; i + lanes <= n; i += lanes) step(i);
  if (i < n) step(n - lanes);
}

// The local copies tell the compiler that stores to `out` do not change them.
template <int Taps, class R>
SHOAL_INLINE void combine_taps(R* out, const R* const* sources, const R* coefficients, Index n) {
  const R* source[Taps];
  R factor[Taps];
  for (int k = 0; k < Taps; ++k) {
    source[k] = sources[k];
    factor[k] = coefficients[k];
  }
  for_each_vector<R>(
      n, [&](Index i) __attribute__((always_inline)) {
        simd::Vector<R> sum, element;
        simd::load(sum, source[0] + i);
        sum *= factor[0];
        for (int k = 1; k < Taps; ++k) {
          simd::load(element, source[k] + i);
          sum += element * factor[k];
        }
        simd::store(out + i, sum);
      });
}

template <class R>
SHOAL_INLINE void combine_many_taps(R* out, const R* const* sources, const R* coefficients, std::size_t taps,
                                    Index n) {
  for_each_vector<R>(
      n, [&](Index i) __attribute__((always_inline)) {
        simd::Vector<R> sum, element;
        simd::load(sum, sources[0] + i);
        sum *= coefficients[0];
        for (std::size_t k = 1; k < taps; ++k) {
          simd::load(element, sources[k] + i);
          sum += element * coefficients[k];
        }
        simd::store(out + i, sum);
      });
}

template <class R>
SHOAL_INLINE void combine_all(R* out, const R* const* s, const R* c, std::size_t taps, Index n) {
  switch (taps) {
    case 0: std::fill_n(out, n, R(0)); return;
    case 1: return combine_taps<1>(out, s, c, n);
    case 2: return combine_taps<2>(out, s, c, n);
    case 3: return combine_taps<3>(out, s, c, n);
    case 4: return combine_taps<4>(out, s, c, n);
    case 5: return combine_taps<5>(out, s, c, n);
    case 6: return combine_taps<6>(out, s, c, n);
    case 7: return combine_taps<7>(out, s, c, n);
    default: return combine_many_taps(out, s, c, taps, n);
  }
}

// Whole aligned lines, past the caches. Stores of 64 bytes are faster than four of 16 where there are any.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) void stream_by_64(char* to, const char* from, Index bytes) {
  for (Index i = 0; i < bytes; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_load_si512(from + i));
}

void stream_by_16(char* to, const char* from, Index bytes) {
  for (Index i = 0; i < bytes; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
}

void stream(char* to, const char* from, Index bytes) {
  static const bool has_64 = __builtin_cpu_supports("avx512f") != 0;
  has_64 ? stream_by_64(to, from, bytes) : stream_by_16(to, from, bytes);
}
#else
void stream(char* to, const char* from, Index bytes) { std::copy_n(from, bytes, to); }
#endif

Index beyond_line(const void* address) {
  return static_cast<Index>(reinterpret_cast<std::uintptr_t>(address) % 64);
}

}  // namespace

SHOAL_CLONES void combine_long(double* out, const double* const* sources, const double* coefficients,
                               std::size_t taps, Index n) {
  combine_all(out, sources, coefficients, taps, n);
}

SHOAL_CLONES void combine_long(float* out, const float* const* sources, const float* coefficients,
                               std::size_t taps, Index n) {
  combine_all(out, sources, coefficients, taps, n);
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
  stream(reinterpret_cast<char*>(base_ + first_line), reinterpret_cast<const char*>(buffer_ + first_line),
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

}  // namespace shoal::linop
