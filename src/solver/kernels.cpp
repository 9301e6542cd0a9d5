// SPDX-License-Identifier: Apache-2.0
#include "solver/kernels.h"

#include <type_traits>

#include "shoal/array/simd.h"

namespace shoal::solver::kernels {
namespace {

using array::simd::Doubles;
using array::simd::even_sum;
using array::simd::lanes;
using array::simd::load;
using array::simd::odd_sum;
using array::simd::store;
using array::simd::Vector;
using array::simd::widen;

template <class V>
SHOAL_INLINE void add_product(Doubles& sum, const V& a, const V& b) {
  Doubles wide_a, wide_b;
  widen(wide_a, a);
  widen(wide_b, b);
  sum += wide_a * wide_b;
}
SHOAL_INLINE void add_product(double& sum, float a, float b) {
  sum += static_cast<double>(a) * static_cast<double>(b);
}
SHOAL_INLINE void add_product(double& sum, double a, double b) { sum += a * b; }

template <class V>
SHOAL_INLINE void add_scaled_square(Doubles& sum, const V& a, double factor) {
  Doubles wide;
  widen(wide, a);
  wide *= factor;
  sum += wide * wide;
}
template <class R>
requires std::is_floating_point_v<R> SHOAL_INLINE void add_scaled_square(double& sum, R a, double factor) {
  const double wide = static_cast<double>(a) * factor;
  sum += wide * wide;
}

SHOAL_INLINE double total(const Doubles& v, double rest) { return even_sum(v) + odd_sum(v) + rest; }

// Elements of an array in flight: eight at once, or one of those that are left.
template <class R>
struct Eight {
  Vector<R> value;
  SHOAL_INLINE explicit Eight(const R* from) { load(value, from); }
  SHOAL_INLINE void put(R* to) const { store(to, value); }
};
template <class R>
struct One {
  R value;
  SHOAL_INLINE explicit One(const R* from) : value(*from) {}
  SHOAL_INLINE void put(R* to) const { *to = value; }
};

// step(kind, i, first sum, second sum) for all elements. Vectors go in turn to four sums, so that as many
// additions are under way as hide their latency.
template <class R, class Step>
SHOAL_INLINE TwoSums for_elements(std::size_t n, const Step& step) {
  constexpr std::size_t unroll = 4;
  Doubles first[unroll] = {}, second[unroll] = {};
  std::size_t i = 0;
  for (; i + unroll * lanes <= n; i += unroll * lanes) {
    step(static_cast<Eight<R>*>(nullptr), i, first[0], second[0]);
    step(static_cast<Eight<R>*>(nullptr), i + lanes, first[1], second[1]);
    step(static_cast<Eight<R>*>(nullptr), i + 2 * lanes, first[2], second[2]);
    step(static_cast<Eight<R>*>(nullptr), i + 3 * lanes, first[3], second[3]);
  }
  for (; i + lanes <= n; i += lanes) step(static_cast<Eight<R>*>(nullptr), i, first[0], second[0]);
  TwoSums rest;
  for (; i < n; ++i) step(static_cast<One<R>*>(nullptr), i, rest.first, rest.second);
  return {total((first[0] + first[1]) + (first[2] + first[3]), rest.first),
          total((second[0] + second[1]) + (second[2] + second[3]), rest.second)};
}

// What stands for elements in a step: SHOAL_STEP { Element u(x + i); ... }
#define SHOAL_STEP                                                                                     \
  [&]<class Element>(Element*, std::size_t i, [[maybe_unused]] auto& sum, [[maybe_unused]] auto& sum2) \
      __attribute__((always_inline))

template <class R>
SHOAL_INLINE double dot_body(const R* x, const R* y, std::size_t n) {
  return for_elements<R>(
             n,
             SHOAL_STEP {
               const Element u(x + i), v(y + i);
               add_product(sum, u.value, v.value);
             })
      .first;
}

template <class R>
SHOAL_INLINE void axpby_body(R a, const R* x, R b, R* y, std::size_t n) {
  for_elements<R>(
      n, SHOAL_STEP {
        const Element u(x + i);
        Element v(y + i);
        v.value = a * u.value + b * v.value;
        v.put(y + i);
      });
}

template <class R>
SHOAL_INLINE double axpby_norm2_body(R a, const R* x, R b, R* y, std::size_t n) {
  return for_elements<R>(
             n,
             SHOAL_STEP {
               const Element u(x + i);
               Element v(y + i);
               v.value = a * u.value + b * v.value;
               v.put(y + i);
               add_product(sum, v.value, v.value);
             })
      .first;
}

template <class R>
SHOAL_INLINE double axpy_scaled_norm2_body(R a, const R* x, R* y, double f, std::size_t n) {
  return for_elements<R>(
             n,
             SHOAL_STEP {
               const Element u(x + i);
               Element v(y + i);
               v.value += a * u.value;
               v.put(y + i);
               add_scaled_square(sum, v.value, f);
             })
      .first;
}

template <class R>
SHOAL_INLINE void cg_update_body(R c, R* x, const R* r, R b, R* p, std::size_t n) {
  for_elements<R>(
      n, SHOAL_STEP {
        const Element residual(r + i);
        Element solution(x + i), direction(p + i);
        solution.value += c * direction.value;
        direction.value = residual.value + b * direction.value;
        solution.put(x + i);
        direction.put(p + i);
      });
}

template <class R>
SHOAL_INLINE TwoSums pipelined_cg_body(R b, R a, R c, const R* q, R* z, R* s, R* p, R* x, R* r, R* w,
                                       std::size_t n) {
  return for_elements<R>(
      n, SHOAL_STEP {
        const Element aw(q + i);
        Element az(z + i), ap(s + i), direction(p + i), solution(x + i), residual(r + i), ar(w + i);
        az.value = aw.value + b * az.value;
        ap.value = ar.value + b * ap.value;
        direction.value = residual.value + b * direction.value;
        solution.value += c * direction.value;
        residual.value -= a * ap.value;
        ar.value -= a * az.value;
        az.put(z + i);
        ap.put(s + i);
        direction.put(p + i);
        solution.put(x + i);
        residual.put(r + i);
        ar.put(w + i);
        add_product(sum, residual.value, residual.value);
        add_product(sum2, ar.value, residual.value);
      });
}

template <class R>
SHOAL_INLINE double pipelined_residual_body(R b, R a, const R* u, R* q, R* r, std::size_t n) {
  return for_elements<R>(
             n,
             SHOAL_STEP {
               const Element as(u + i);
               Element ap(q + i), residual(r + i);
               ap.value = as.value + b * ap.value;
               residual.value -= a * ap.value;
               ap.put(q + i);
               residual.put(r + i);
               add_product(sum, residual.value, residual.value);
             })
      .first;
}

template <class R>
SHOAL_INLINE TwoSums pipelined_gradient_body(R b, R a, R c, const R* v, R* z, R* s, R* p, R* x, double f,
                                             std::size_t n) {
  return for_elements<R>(
      n, SHOAL_STEP {
        const Element ns(v + i);
        Element np(z + i), gradient(s + i), direction(p + i), solution(x + i);
        direction.value = gradient.value + b * direction.value;
        np.value = ns.value + b * np.value;
        solution.value += c * direction.value;
        gradient.value -= a * np.value;
        np.put(z + i);
        gradient.put(s + i);
        direction.put(p + i);
        solution.put(x + i);
        add_product(sum, gradient.value, gradient.value);
        add_scaled_square(sum2, solution.value, f);
      });
}

template <class R>
SHOAL_INLINE void lsqr_update_body(R c, R* x, R a, const R* v, R b, R* w, std::size_t n) {
  for_elements<R>(
      n, SHOAL_STEP {
        const Element next(v + i);
        Element solution(x + i), direction(w + i);
        solution.value += c * direction.value;
        direction.value = a * next.value + b * direction.value;
        solution.put(x + i);
        direction.put(w + i);
      });
}

template <class R>
SHOAL_INLINE double ista_residuals_body(const R* b, const R* ax, R m, R* residual, R* extrapolated,
                                        std::size_t n) {
  return for_elements<R>(
             n,
             SHOAL_STEP {
               Element next(b + i);
               const Element image(ax + i), old(residual + i);
               next.value -= image.value;
               Element ahead = next;
               ahead.value += m * (next.value - old.value);
               next.put(residual + i);
               ahead.put(extrapolated + i);
               add_product(sum, next.value, next.value);
             })
      .first;
}

template <class R>
SHOAL_INLINE TwoSums extrapolate_body(R m, const R* g, R* x, R* y, std::size_t n) {
  return for_elements<R>(
      n, SHOAL_STEP {
        const Element next(g + i);
        Element change = next, ahead = next;
        change.value -= Element(x + i).value;
        ahead.value += m * change.value;
        ahead.put(y + i);
        next.put(x + i);
        add_product(sum, change.value, change.value);
        add_product(sum2, next.value, next.value);
      });
}

}  // namespace

#define SHOAL_SOLVER_KERNELS(R)                                                                           \
  SHOAL_CLONES double dot(const R* x, const R* y, std::size_t n) { return dot_body(x, y, n); }            \
  SHOAL_CLONES double sum_squares(const R* x, std::size_t n) { return dot_body(x, x, n); }                \
  SHOAL_CLONES void axpby(R a, const R* x, R b, R* y, std::size_t n) { axpby_body(a, x, b, y, n); }       \
  SHOAL_CLONES double axpby_norm2(R a, const R* x, R b, R* y, std::size_t n) {                            \
    return axpby_norm2_body(a, x, b, y, n);                                                               \
  }                                                                                                       \
  SHOAL_CLONES double axpy_scaled_norm2(R a, const R* x, R* y, double f, std::size_t n) {                 \
    return axpy_scaled_norm2_body(a, x, y, f, n);                                                         \
  }                                                                                                       \
  SHOAL_CLONES void cg_update(R c, R* x, const R* r, R b, R* p, std::size_t n) {                          \
    cg_update_body(c, x, r, b, p, n);                                                                     \
  }                                                                                                       \
  SHOAL_CLONES TwoSums pipelined_cg_update(R b, R a, R c, const R* q, R* z, R* s, R* p, R* x, R* r, R* w, \
                                           std::size_t n) {                                               \
    return pipelined_cg_body(b, a, c, q, z, s, p, x, r, w, n);                                            \
  }                                                                                                       \
  SHOAL_CLONES double pipelined_residual_update(R b, R a, const R* u, R* q, R* r, std::size_t n) {        \
    return pipelined_residual_body(b, a, u, q, r, n);                                                     \
  }                                                                                                       \
  SHOAL_CLONES TwoSums pipelined_gradient_update(R b, R a, R c, const R* v, R* z, R* s, R* p, R* x,       \
                                                 double f, std::size_t n) {                               \
    return pipelined_gradient_body(b, a, c, v, z, s, p, x, f, n);                                         \
  }                                                                                                       \
  SHOAL_CLONES void lsqr_update(R c, R* x, R a, const R* v, R b, R* w, std::size_t n) {                   \
    lsqr_update_body(c, x, a, v, b, w, n);                                                                \
  }                                                                                                       \
  SHOAL_CLONES double ista_residuals(const R* b, const R* ax, R m, R* residual, R* extrapolated,          \
                                     std::size_t n) {                                                     \
    return ista_residuals_body(b, ax, m, residual, extrapolated, n);                                      \
  }                                                                                                       \
  SHOAL_CLONES TwoSums extrapolate(R m, const R* g, R* x, R* y, std::size_t n) {                          \
    return extrapolate_body(m, g, x, y, n);                                                               \
  }
SHOAL_SOLVER_KERNELS(float)
SHOAL_SOLVER_KERNELS(double)
#undef SHOAL_SOLVER_KERNELS

}  // namespace shoal::solver::kernels
