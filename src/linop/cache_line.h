// SPDX-License-Identifier: Apache-2.0
// A cache line of complex numbers as one vector, for the kernels of transforms.
#pragma once

#include "shoal/array/layout.h"
#include "shoal/array/simd.h"

namespace shoal::linop {

typedef float ManyFloats __attribute__((vector_size(64)));
template <class R>
struct LineOf {
  using type = array::simd::Doubles;
};
template <>
struct LineOf<float> {
  using type = ManyFloats;
};
/// Real and imaginary parts in turn.
template <class R>
using Line = typename LineOf<R>::type;
template <class R>
inline constexpr array::Index line_reals = 64 / static_cast<array::Index>(sizeof(R));

// Vectors go by reference, as in simd.h.

template <class V, class R>
SHOAL_INLINE void load(V& v, const R* memory) {
  std::memcpy(&v, memory, sizeof v);
}
template <class V, class R>
SHOAL_INLINE void store(R* memory, const V& v) {
  std::memcpy(memory, &v, sizeof v);
}

SHOAL_INLINE void swap_parts(array::simd::Doubles& v) { array::simd::swap_pairs(v); }
SHOAL_INLINE void swap_parts(ManyFloats& v) {
  v = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
}
/// {first, -first, first, ...}
template <class V, class R>
SHOAL_INLINE void alternate(V& v, R first) {
  for (unsigned i = 0; i < sizeof(V) / sizeof(R); ++i) v[i] = i % 2 == 0 ? first : -first;
}

}  // namespace shoal::linop
