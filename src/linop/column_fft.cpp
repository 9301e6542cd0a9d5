// SPDX-License-Identifier: Apache-2.0
#include "linop/column_fft.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "linop/cache_line.h"

namespace shoal::linop {

// What the clones below have besides their passes.
template <class R>
struct ColumnRun {
  const R* in;
  Index in_stride;
  R* out;
  Index out_stride;  // in reals
  R* scratch;        // two panels
  R sign, scale;
};
void run_passes(std::span<const ColumnPass<double>> passes, const ColumnRun<double>& run);
void run_passes(std::span<const ColumnPass<float>> passes, const ColumnRun<float>& run);

namespace {

// Two panels of the longest stay in the second-level cache.
constexpr Index longest = 4096;
constexpr std::array<int, 5> radices{8, 4, 5, 3, 2};

// Where a vector is several registers, compilers lower what follows to four times FFTW's time.
bool has_wide_vectors() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Times -i forwards and i backwards is: parts change places, then times `sign`, {1, -1, ...} forwards. The
// product becomes part of the sum that follows.

template <class V>
SHOAL_INLINE void butterfly_2(V& a, V& b) {
  const V sum = a + b;
  b = a - b;
  a = sum;
}
template <class V>
SHOAL_INLINE void butterfly_4(V& a, V& b, V& c, V& d, const V& sign) {
  butterfly_2(a, c);
  butterfly_2(b, d);
  swap_parts(d);
  const V odd = d, even = c;
  c = a - b;
  a += b;
  b = even + sign * odd;
  d = even - sign * odd;
}

template <int radix>
struct Butterfly;
template <>
struct Butterfly<1> {
  template <class R, class V>
  static SHOAL_INLINE void run(V*, const V&) {}
};
template <>
struct Butterfly<2> {
  template <class R, class V>
  static SHOAL_INLINE void run(V* a, const V&) {
    butterfly_2(a[0], a[1]);
  }
};
template <>
struct Butterfly<3> {
  template <class R, class V>
  static SHOAL_INLINE void run(V* a, const V& sign) {
    constexpr R half = R{0.5}, sine = static_cast<R>(0.86602540378443864676);
    const V sum = a[1] + a[2], factor = sign * sine;
    V turned = a[1] - a[2];
    swap_parts(turned);
    const V middle = a[0] - half * sum;
    a[0] += sum;
    a[1] = middle + factor * turned;
    a[2] = middle - factor * turned;
  }
};
template <>
struct Butterfly<4> {
  template <class R, class V>
  static SHOAL_INLINE void run(V* a, const V& sign) {
    butterfly_4(a[0], a[1], a[2], a[3], sign);
  }
};
template <>
struct Butterfly<5> {
  template <class R, class V>
  static SHOAL_INLINE void run(V* a, const V& sign) {
    constexpr R cos1 = static_cast<R>(0.30901699437494742410), sin1 = static_cast<R>(0.95105651629515357212),
                cos2 = static_cast<R>(-0.80901699437494742410), sin2 = static_cast<R>(0.58778525229247312917);
    const V sum1 = a[1] + a[4], sum2 = a[2] + a[3], factor1 = sign * sin1, factor2 = sign * sin2;
    V far = a[1] - a[4], near = a[2] - a[3];
    swap_parts(far);
    swap_parts(near);
    const V even1 = a[0] + cos1 * sum1 + cos2 * sum2, even2 = a[0] + cos2 * sum1 + cos1 * sum2;
    const V odd1 = factor1 * far + factor2 * near, odd2 = factor2 * far - factor1 * near;
    a[0] += sum1 + sum2;
    a[1] = even1 + odd1;
    a[4] = even1 - odd1;
    a[2] = even2 + odd2;
    a[3] = even2 - odd2;
  }
};
template <>
struct Butterfly<8> {
  template <class R, class V>
  static SHOAL_INLINE void run(V* a, const V& sign) {
    constexpr R root = static_cast<R>(0.70710678118654752440);
    butterfly_4(a[0], a[2], a[4], a[6], sign);
    butterfly_4(a[1], a[3], a[5], a[7], sign);
    V turned1 = a[3], turned2 = a[5], turned3 = a[7];
    swap_parts(turned1);
    swap_parts(turned2);
    swap_parts(turned3);
    const V odd0 = a[1], odd1 = a[3] + sign * turned1, odd3 = sign * turned3 - a[7];
    const V even1 = a[2], even2 = a[4], even3 = a[6];
    a[4] = a[0] - odd0;
    a[0] += odd0;
    a[1] = even1 + root * odd1;
    a[5] = even1 - root * odd1;
    a[2] = even2 + sign * turned2;
    a[6] = even2 - sign * turned2;
    a[3] = even3 + root * odd3;
    a[7] = even3 - root * odd3;
  }
};

// From rows of `in` to rows of `out`; the last pass has no roots but the scale.
template <int radix, bool last, class R>
SHOAL_INLINE void run_pass(const ColumnPass<R>& pass, const R* in, Index in_stride, R* out, Index out_stride,
                           const Line<R>& sign, R scale) {
  const Index repeats = pass.repeats, apart = pass.groups * repeats;
  const R* roots = pass.roots.data();
  for (Index group = 0; group < pass.groups; ++group, roots += 2 * (radix - 1))
    for (Index repeat = 0; repeat < repeats; ++repeat) {
      const R* from = in + (group * repeats + repeat) * in_stride;
      R* to = out + (radix * group * repeats + repeat) * out_stride;
      Line<R> a[radix];
      for (int k = 0; k < radix; ++k) load(a[k], from + k * apart * in_stride);
      Butterfly<radix>::template run<R>(a, sign);
      if constexpr (last) {
        for (int k = 0; k < radix; ++k) store(to + k * repeats * out_stride, a[k] * scale);
        continue;
      }
      store(to, a[0]);
      for (int k = 1; k < radix; ++k) {
        const R* root = roots + 2 * (k - 1);
        Line<R> turned = a[k];
        swap_parts(turned);
        store(to + k * repeats * out_stride, a[k] * root[0] + turned * (sign * root[1]));
      }
    }
}

template <bool last, class R>
SHOAL_INLINE void run_any(const ColumnPass<R>& pass, const R* in, Index in_stride, R* out, Index out_stride,
                          const Line<R>& sign, R scale) {
  switch (pass.radix) {
    case 1: return run_pass<1, last>(pass, in, in_stride, out, out_stride, sign, scale);
    case 2: return run_pass<2, last>(pass, in, in_stride, out, out_stride, sign, scale);
    case 3: return run_pass<3, last>(pass, in, in_stride, out, out_stride, sign, scale);
    case 4: return run_pass<4, last>(pass, in, in_stride, out, out_stride, sign, scale);
    case 5: return run_pass<5, last>(pass, in, in_stride, out, out_stride, sign, scale);
    default: return run_pass<8, last>(pass, in, in_stride, out, out_stride, sign, scale);
  }
}

template <class R>
SHOAL_INLINE void run_all(std::span<const ColumnPass<R>> passes, const ColumnRun<R>& run) {
  constexpr Index line = line_reals<R>;
  Line<R> sign;
  alternate(sign, run.sign);
  const std::size_t last = passes.size() - 1;
  const Index panel = passes[last].radix * passes[last].repeats * line;
  const R* in = run.in;
  Index in_stride = run.in_stride;
  for (std::size_t i = 0; i < last; ++i) {
    R* const out = run.scratch + (i % 2 == 0 ? 0 : panel);
    run_any<false>(passes[i], in, in_stride, out, line, sign, R{1});
    in = out;
    in_stride = line;
  }
  run_any<true>(passes[last], in, in_stride, run.out, run.out_stride, sign, run.scale);
}

}  // namespace

SHOAL_CLONES void run_passes(std::span<const ColumnPass<double>> passes, const ColumnRun<double>& run) {
  run_all(passes, run);
}
SHOAL_CLONES void run_passes(std::span<const ColumnPass<float>> passes, const ColumnRun<float>& run) {
  run_all(passes, run);
}

template <class R>
bool ColumnFft<R>::takes(Index n) {
  if (n < 1 || n > longest || !has_wide_vectors()) return false;
  for (const Index factor : {2, 3, 5})
    while (n % factor == 0) n /= factor;
  return n == 1;
}

template <class R>
ColumnFft<R>::ColumnFft(Direction direction, Index n)
    : n_(n), sign_(direction == Direction::forward ? R{1} : R{-1}), scratch_(at(6 * width * n)) {
  Index left = n, repeats = 1;
  for (const int radix : radices)
    while (left % radix == 0) {
      // 16 is two passes of 4, not one of 8 and one of 2.
      if (radix == 8 && left % 8 == 0 && left / 8 % 4 == 2) break;
      ColumnPass<R> pass{radix, left / radix, repeats, {}};
      for (Index group = 0; group < pass.groups; ++group)
        for (int k = 1; k < radix; ++k) {
          const double angle =
              2 * std::numbers::pi * static_cast<double>(group * k) / static_cast<double>(left);
          pass.roots.insert(pass.roots.end(),
                            {static_cast<R>(std::cos(angle)), static_cast<R>(std::sin(angle))});
        }
      passes_.push_back(std::move(pass));
      left /= radix;
      repeats *= radix;
    }
  if (passes_.empty()) passes_.push_back({1, 1, 1, {}});
}

template <class R>
void ColumnFft<R>::run(const C* in, Index in_stride, C* out, Index out_stride, R scale) const {
  run_passes(passes_, ColumnRun<R>{reinterpret_cast<const R*>(in), 2 * in_stride, reinterpret_cast<R*>(out),
                                   2 * out_stride, scratch_.data(), sign_, scale});
}

template <class R>
void ColumnFft<R>::run_columns(const C* in, Index in_stride, C* out, Index out_stride, Index columns,
                               R scale) const {
  Index c = 0;
  for (; c + width <= columns; c += width) run(in + c, in_stride, out + c, out_stride, scale);
  if (c == columns) return;
  C* const panel = reinterpret_cast<C*>(scratch_.data() + 4 * width * n_);
  load_panel<R>({in + c, in_stride, 1}, n_, columns - c, panel);
  run(panel, width, panel, width, scale);
  store_panel<R>(panel, n_, columns - c, {out + c, out_stride, 1});
}

template class ColumnFft<float>;
template class ColumnFft<double>;

}  // namespace shoal::linop
