// SPDX-License-Identifier: Apache-2.0
#include "shoal/solver/power_iteration.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "solver/run.h"
#include "solver/space.h"

namespace shoal::solver {
namespace {

// v^H w, whose imaginary part is the real part of (-i v)^H w = sum of re v im w - im v re w.
template <class T>
LocalSum imaginary_dot(const Space<T>& space, const DistributedArray<T>& v, const DistributedArray<T>& w) {
  if constexpr (is_complex<T>) {
    return space.sum([&](std::size_t first, std::size_t count) {
      double sum = 0;
      for (std::size_t i = first / 2; i < (first + count) / 2; ++i)
        sum += static_cast<double>(v[i].real()) * static_cast<double>(w[i].imag()) -
               static_cast<double>(v[i].imag()) * static_cast<double>(w[i].real());
      return sum;
    });
  } else {
    return {};
  }
}

template <class T>
T number(double re, double im) {
  if constexpr (is_complex<T>)
    return T(static_cast<Real<T>>(re), static_cast<Real<T>>(im));
  else
    return static_cast<T>(re);
}

// The start: normal random elements, divided by their norm.
template <class T>
DistributedArray<T> random_direction(const AnyOperator<T>& a, const Space<T>& space, std::uint64_t seed) {
  DistributedArray<T> v(a.communicator(), a.domain(), array::uninitialised);
  fill_normal(v, seed);
  const double length = norm(v);
  if (length > 0) space.axpby(1 / length, v, 0, v);
  return v;
}

}  // namespace

template <class T>
Eigenpair<T> power_iteration(const AnyOperator<T>& a, const PowerOptions& options) {
  require_equal(a.domain(), a.range(), "the domain and the range of the operator of a power iteration");
  const Space<T> space(a.domain(), a.communicator().rank());
  Reducer sum(space.any_split());
  sum.use(a.communicator());
  Eigenpair<T> result{T(0), random_direction(a, space, options.seed)};
  DistributedArray<T>& v = result.vector;
  DistributedArray<T> w(a.communicator(), a.domain(), array::uninitialised);
  double re_before = 0, im_before = 0;
  while (result.stop == Stop::none) {
    if (result.iterations == options.max_iterations) {
      result.stop = Stop::iteration_limit;
      break;
    }
    a.apply(v, w);
    const auto [re, im, ww] = sum(space.dot(v, w), imaginary_dot(space, v, w), space.norm2(w));
    ++result.iterations;
    result.value = number<T>(re, im);
    if (!std::isfinite(ww)) {
      result.stop = Stop::non_finite;
    } else if (ww == 0) {
      result.stop = Stop::breakdown;
    } else {
      const double square = re * re + im * im;
      const double change = std::hypot(re - re_before, im - im_before);
      if (change <= options.tolerance * std::sqrt(square) && ww - square <= options.tolerance * square)
        result.stop = Stop::converged;
      space.axpby(1 / std::sqrt(ww), w, 0, w);
      std::swap(v, w);
      re_before = re;
      im_before = im;
    }
  }
  return result;
}

template <class T>
double largest_squared_singular_value(const AnyOperator<T>& a, const PowerOptions& options) {
  return static_cast<double>(std::abs(power_iteration(adjoint(a) * a, options).value));
}

#define SHOAL_INSTANTIATE(T)                                                         \
  template Eigenpair<T> power_iteration(const AnyOperator<T>&, const PowerOptions&); \
  template double largest_squared_singular_value(const AnyOperator<T>&, const PowerOptions&);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
