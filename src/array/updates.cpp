// SPDX-License-Identifier: Apache-2.0
// Element-wise work on whole arrays, and stores past the caches.
#include <algorithm>
#include <cstring>

#include "array/kernels.h"
#include "shoal/array/distributed_array.h"
#include "shoal/array/simd.h"
#include "shoal/array/streaming.h"

namespace shoal::array {
namespace expressions {

void stream(void* to, const void* from, std::size_t bytes) {
  if (can_stream(to) && bytes % 64 == 0)
    stream_lines(to, from, static_cast<Index>(bytes));
  else
    std::memcpy(to, from, bytes);
}

void end_streaming() { simd::end_streaming(); }

template <class A, class B, class T>
void linear(A a, const T* x, B b, const T* y, T* out, std::size_t n, bool streaming) {
  if constexpr (!is_complex<T>) {
    kernels::linear(a, x, b, y, out, n, streaming);
  } else {
    using R = Real<T>;
    const auto *real_x = reinterpret_cast<const R*>(x), *real_y = reinterpret_cast<const R*>(y);
    auto* real_out = reinterpret_cast<R*>(out);
    if constexpr (!is_complex<A> && !is_complex<B>)
      kernels::linear(a, real_x, b, real_y, real_out, 2 * n, streaming);
    else if constexpr (is_complex<A> && !is_complex<B>)
      kernels::linear_pairs(b, real_y, a, real_x, real_out, 2 * n, streaming);
    else
      kernels::linear_pairs(a, real_x, b, real_y, real_out, 2 * n, streaming);
  }
}

#define SHOAL_ARRAY_LINEAR(A, B, T) template void linear(A, const T*, B, const T*, T*, std::size_t, bool);
#define SHOAL_ARRAY_LINEAR_OF(R)                          \
  SHOAL_ARRAY_LINEAR(R, R, R)                             \
  SHOAL_ARRAY_LINEAR(R, R, std::complex<R>)               \
  SHOAL_ARRAY_LINEAR(R, std::complex<R>, std::complex<R>) \
  SHOAL_ARRAY_LINEAR(std::complex<R>, R, std::complex<R>) \
  SHOAL_ARRAY_LINEAR(std::complex<R>, std::complex<R>, std::complex<R>)
SHOAL_ARRAY_LINEAR_OF(float)
SHOAL_ARRAY_LINEAR_OF(double)
#undef SHOAL_ARRAY_LINEAR
#undef SHOAL_ARRAY_LINEAR_OF

}  // namespace expressions

template <class T>
void DistributedArray<T>::fill(T value) {
  std::fill_n(data_, local_size_, value);
}

template <class T>
DistributedArray<T>& DistributedArray<T>::operator*=(T factor) {
  return *this = *this * factor;
}

template <class T>
DistributedArray<T>& DistributedArray<T>::operator/=(T divisor) {
  return *this = *this / divisor;
}

template <class T>
void conjugate(DistributedArray<T>& x) {
  if constexpr (is_complex<T>) x = conj(x);
}

template <class T>
void axpby(T a, const DistributedArray<T>& x, T b, DistributedArray<T>& y) {
  require_equal(x.layout(), y.layout(), "axpby");
  if (b == T(0))
    expressions::assign(y.local(), a * x);
  else
    expressions::linear(a, x.local().data(), b, y.local().data(), y.local().data(), y.local().size(), false);
}

#define SHOAL_ARRAY_UPDATES(T)                                      \
  template void DistributedArray<T>::fill(T);                       \
  template DistributedArray<T>& DistributedArray<T>::operator*=(T); \
  template DistributedArray<T>& DistributedArray<T>::operator/=(T); \
  template void conjugate(DistributedArray<T>&);                    \
  template void axpby(T, const DistributedArray<T>&, T, DistributedArray<T>&);
SHOAL_ARRAY_UPDATES(float)
SHOAL_ARRAY_UPDATES(double)
SHOAL_ARRAY_UPDATES(std::complex<float>)
SHOAL_ARRAY_UPDATES(std::complex<double>)
#undef SHOAL_ARRAY_UPDATES

}  // namespace shoal::array
