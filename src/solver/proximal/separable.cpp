// SPDX-License-Identifier: Apache-2.0
// Functions that are sums over elements, or over the members of a stack.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "shoal/base/error.h"
#include "shoal/solver/proximal/functions.h"
#include "solver/proximal/lengths.h"
#include "solver/run.h"
#include "solver/threshold.h"

namespace shoal::solver {
namespace {

double checked_sigma(double sigma, const char* name) {
  if (!(sigma >= 0) || !std::isfinite(sigma))
    fail(ErrorCode::invalid_argument, fmt::format("{}: sigma is {}; give 0 or more", name, sigma));
  return sigma;
}

// l0 and l1.
template <class T>
struct Thresholded {
  using value_type = T;
  using Array = DistributedArray<T>;
  Threshold kind;
  double sigma;
  mutable SpaceOf<T> space{};

  LocalSum local_value(const Array& x) const {
    return sigma *
           sum_elements(space(x), x, [&](const T* from, std::size_t n) { return penalty(kind, from, n); });
  }
  void prox(const Array& x, double tau, Array& out) const {
    copy_elements(x, out);
    apply_threshold(kind, tau * sigma, out.local().data(), out.local().size());
  }
};

template <class T>
struct Box {
  using value_type = T;
  using Array = DistributedArray<T>;
  T lower, upper;
  mutable SpaceOf<T> space{};

  LocalSum local_value(const Array& x) const {
    return sum_elements(space(x), x, [&](const T* from, std::size_t n) {
      return kernels::all_between(lower, upper, from, n) ? 0.0 : std::numeric_limits<double>::infinity();
    });
  }
  void prox(const Array& x, double, Array& out) const {
    kernels::clamp(lower, upper, x.local().data(), out.local().data(), x.local().size());
  }
};

template <class T>
struct MixedNorm {
  using value_type = T;
  using Array = DistributedArray<T>;
  double sigma;
  mutable SpaceOf<T> space_of_member{};

  LocalSum local_value(const Array& x) const {
    lengths::check(x.layout(), "l21");
    return sigma * lengths::sum(space_of_member, x);
  }
  void prox(const Array& x, double tau, Array& out) const {
    lengths::check(x.layout(), "l21");
    const double t = tau * sigma;
    lengths::scale(
        x, [t](double* squares, std::size_t n) { kernels::shrink_factors(t, squares, n); }, out);
  }
};

template <class T>
struct Sum {
  using value_type = T;
  using Array = DistributedArray<T>;
  std::vector<AnyProximal<T>> functions;

  void check(const Array& x) const {
    const std::size_t members = x.layout().members().size();
    if (!x.layout().is_stack() || members != functions.size())
      fail(ErrorCode::invalid_argument,
           fmt::format("separable_sum: {} functions for {}; give a stack of as many", functions.size(),
                       x.layout().describe()));
  }
  LocalSum local_value(const Array& x) const {
    check(x);
    LocalSum sum;
    for (std::size_t i = 0; i < functions.size(); ++i)
      sum += functions[i].local_value(x.member(static_cast<int>(i)));
    return sum;
  }
  void prox(const Array& x, double tau, Array& out) const {
    check(x);
    for (std::size_t i = 0; i < functions.size(); ++i)
      functions[i].prox(x.member(static_cast<int>(i)), tau, out.member(static_cast<int>(i)));
  }
};

template <class T>
struct SmoothSum : Sum<T> {
  using Array = DistributedArray<T>;
  LocalSum gradient(const Array& x, Array& out) const {
    this->check(x);
    LocalSum sum;
    for (std::size_t i = 0; i < this->functions.size(); ++i)
      sum += this->functions[i].gradient(x.member(static_cast<int>(i)), out.member(static_cast<int>(i)));
    return sum;
  }
};

}  // namespace

template <class T>
AnyProximal<T> l0(double sigma) {
  return Thresholded<T>{Threshold::hard, checked_sigma(sigma, "l0")};
}
template <class T>
AnyProximal<T> l1(double sigma) {
  return Thresholded<T>{Threshold::soft, checked_sigma(sigma, "l1")};
}
template <class T>
AnyProximal<T> box(double lower, double upper) {
  if (!(lower <= upper))
    fail(ErrorCode::invalid_argument,
         fmt::format("box: the lower bound {} is not below the upper one {}", lower, upper));
  return Box<T>{static_cast<T>(lower), static_cast<T>(upper)};
}
template <class T>
AnyProximal<T> l21(double sigma) {
  return MixedNorm<T>{checked_sigma(sigma, "l21")};
}
template <class T>
AnyProximal<T> separable_sum(std::vector<AnyProximal<T>> functions) {
  if (std::ranges::all_of(functions, &AnyProximal<T>::has_gradient))
    return SmoothSum<T>{{std::move(functions)}};
  return Sum<T>{std::move(functions)};
}

#define SHOAL_INSTANTIATE(T)              \
  template AnyProximal<T> l0<T>(double);  \
  template AnyProximal<T> l1<T>(double);  \
  template AnyProximal<T> l21<T>(double); \
  template AnyProximal<T> separable_sum<T>(std::vector<AnyProximal<T>>);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE
template AnyProximal<float> box<float>(double, double);
template AnyProximal<double> box<double>(double, double);

}  // namespace shoal::solver
