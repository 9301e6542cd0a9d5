// SPDX-License-Identifier: Apache-2.0
#include "linop/spectrum_of_reals.h"

#include "linop/cache_line.h"

namespace shoal::linop {
namespace {

using array::Index;

// Rows k and n - k of the pairs' spectrum hold what bins k and n - k need: with w the k-th root, the even
// samples' spectrum is that of e = z_k + conj(z_(n-k)), the odd ones' that of d = z_k - conj(z_(n-k)), and
// x_k = (e - i w d) / 2, x_(n-k) = conj(e + i w d) / 2.
template <class R>
SHOAL_INLINE void split(R* panel, const R* roots, Index n, R edge, R inner) {
  using V = Line<R>;
  constexpr Index line = line_reals<R>;
  V conjugate;
  alternate(conjugate, R{1});
  for (Index k = 0; k <= n / 2; ++k) {
    const R scale = (k == 0 ? edge : inner) / 2;
    R *const low = panel + k * line, *const high = panel + (n - k) * line;
    V a, b;
    load(a, low);
    load(b, k == 0 ? low : high);
    b *= conjugate;
    const V e = (a + b) * scale;
    V d = (a - b) * scale, turned = d;
    swap_parts(turned);
    // -i w d, w = c - i s: that is -s d - i c d.
    d = turned * (conjugate * roots[2 * k]) - d * roots[2 * k + 1];
    store(low, e + d);
    store(high, (e - d) * conjugate);
  }
}

// The same backwards: z_k = e + i conj(w) d, z_(n-k) = conj(e - i conj(w) d).
template <class R>
SHOAL_INLINE void join(R* panel, const R* roots, Index n, R edge, R inner) {
  using V = Line<R>;
  constexpr Index line = line_reals<R>;
  V conjugate, real;
  alternate(conjugate, R{1});
  real = (conjugate + R{1}) / R{2};
  for (Index k = 0; k <= n / 2; ++k) {
    const R scale = k == 0 ? edge : inner;
    R *const low = panel + k * line, *const high = panel + (n - k) * line;
    V a, b;
    load(a, low);
    load(b, high);
    if (k == 0) {
      a *= real;
      b *= real;
    }
    b *= conjugate;
    const V e = (a + b) * scale;
    V d = (a - b) * scale, turned = d;
    swap_parts(turned);
    // i conj(w) d, conj(w) = c + i s: that is -s d + i c d.
    d = -(turned * (conjugate * roots[2 * k])) - d * roots[2 * k + 1];
    store(low, e + d);
    if (k > 0) store(high, (e - d) * conjugate);
  }
}

}  // namespace

SHOAL_CLONES void split_spectrum(double* panel, const double* roots, Index n, double edge, double inner) {
  split(panel, roots, n, edge, inner);
}
SHOAL_CLONES void split_spectrum(float* panel, const float* roots, Index n, float edge, float inner) {
  split(panel, roots, n, edge, inner);
}
SHOAL_CLONES void join_spectrum(double* panel, const double* roots, Index n, double edge, double inner) {
  join(panel, roots, n, edge, inner);
}
SHOAL_CLONES void join_spectrum(float* panel, const float* roots, Index n, float edge, float inner) {
  join(panel, roots, n, edge, inner);
}

}  // namespace shoal::linop
