// SPDX-License-Identifier: Apache-2.0
// Vectors of fixed length for the kernels of arrays, the same on every processor: a sum has the same eight
// partial sums, and so the same bits, whatever instructions carry it out.
#pragma once

#include <cstddef>
#include <cstring>

// SHOAL_CLONES before a plain function compiles it for several instruction sets, of which the loader takes
// the best. Sanitizers are not ready when the loader asks, so they get the plain one.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SHOAL_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHOAL_SANITIZED
#endif
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(SHOAL_SANITIZED)
#define SHOAL_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SHOAL_CLONES
#endif
// What kernels call must become part of each clone.
#define SHOAL_INLINE inline __attribute__((always_inline))

namespace shoal::array::simd {

inline constexpr std::size_t lanes = 8;
typedef double Doubles __attribute__((vector_size(64)));
typedef float Floats __attribute__((vector_size(32)));

template <class R>
struct VectorOf;
template <>
struct VectorOf<double> {
  using type = Doubles;
};
template <>
struct VectorOf<float> {
  using type = Floats;
};
/// Eight of R.
template <class R>
using Vector = typename VectorOf<R>::type;

// Vectors go by reference: how they are passed by value depends on the instruction set.

template <class R>
SHOAL_INLINE void load(Vector<R>& v, const R* memory) {
  std::memcpy(&v, memory, sizeof v);
}
/// The same, asking for what comes a little later: helps sums over long arrays, which wait for memory.
template <class R>
SHOAL_INLINE void load_ahead(Vector<R>& v, const R* memory) {
  constexpr std::size_t distance_bytes = 1024;
  __builtin_prefetch(reinterpret_cast<const char*>(memory) + distance_bytes);
  load(v, memory);
}
template <class R>
SHOAL_INLINE void store(R* memory, const Vector<R>& v) {
  std::memcpy(memory, &v, sizeof v);
}
/// After stores past the caches (stream_lines of streaming.h): in order for other threads.
SHOAL_INLINE void end_streaming() {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#endif
}
SHOAL_INLINE void widen(Doubles& wide, const Doubles& v) { wide = v; }
/// One by one: GCC makes one instruction of it, but four of a conversion of vectors in a function with
/// clones, which it takes apart before it knows the instruction sets.
SHOAL_INLINE void widen(Doubles& wide, const Floats& v) {
  wide = Doubles{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}
/// Neighbours in pairs change places: real and imaginary parts.
template <class V>
SHOAL_INLINE void swap_pairs(V& v) {
  v = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
}
/// Sums of the lanes of even and of odd number.
SHOAL_INLINE double even_sum(const Doubles& v) { return (v[0] + v[2]) + (v[4] + v[6]); }
SHOAL_INLINE double odd_sum(const Doubles& v) { return (v[1] + v[3]) + (v[5] + v[7]); }

}  // namespace shoal::array::simd
