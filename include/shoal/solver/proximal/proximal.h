// SPDX-License-Identifier: Apache-2.0
// Functions with a proximal operator: the concept and its erased form.
//
//   prox(x, tau) = argmin over z of |z - x|^2 / 2 + tau f(z)
//
// A function is for arrays of one element type; which layouts it takes, each says. Like linear operators,
// functions may keep memory to work in, so one is used by one thread at a time. Whether it communicates or
// not, every call is collective.
//
//   N. Parikh and S. Boyd, "Proximal algorithms", Foundations and Trends in Optimization 1, 2014.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "shoal/array/distributed_array.h"
#include "shoal/solver/local_sum.h"

namespace shoal::solver {

using array::DistributedArray;

/// local_value() is this rank's part of f(x): methods add up the parts of several sums by one all_reduce.
/// prox() may find `x` and `out` to be one array, and does not read `out` otherwise. A function with a
/// gradient also has
///   LocalSum gradient(x, out)      out = gradient of f at x (two arrays); local_value(x)
/// where, of complex x, the gradient is that over real and imaginary parts: of |x|^2 / 2 it is x.
template <class F>
concept ProximalFunction = requires(const F& f, const DistributedArray<typename F::value_type>& x,
                                    DistributedArray<typename F::value_type>& out) {
  typename F::value_type;
  { f.local_value(x) } -> std::convertible_to<LocalSum>;
  f.prox(x, 1.0, out);
};

/// Any such function, behind one type. Copies are cheap and share it. Checks are here, once.
template <class T>
class AnyProximal {
 public:
  using value_type = T;
  using Array = DistributedArray<T>;

  template <ProximalFunction F>
  requires(!std::same_as<std::remove_cvref_t<F>, AnyProximal> && std::same_as<typename F::value_type, T>)
      AnyProximal(F f)
      : self_(std::make_shared<Model<F>>(std::move(f))) {}

  /// f(x), infinite where x is not allowed; by one all_reduce where x's reductions run.
  double value(const Array& x) const;
  LocalSum local_value(const Array& x) const { return self_->local_value(x); }
  /// `out` may be `x`. tau > 0.
  void prox(const Array& x, double tau, Array& out) const;
  /// The same of the convex conjugate of f, by Moreau's identity: x - tau prox(x / tau, 1 / tau). `out` is
  /// not `x`.
  void prox_dual(const Array& x, double tau, Array& out) const;

  bool has_gradient() const { return self_->has_gradient(); }
  /// Throws unsupported where f has none.
  LocalSum gradient(const Array& x, Array& out) const;

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual LocalSum local_value(const Array& x) const = 0;
    virtual void prox(const Array& x, double tau, Array& out) const = 0;
    virtual bool has_gradient() const = 0;
    virtual LocalSum gradient(const Array& x, Array& out) const = 0;
  };
  template <class F>
  struct Model final : Interface {
    static constexpr bool smooth = requires(const F& f, const Array& x, Array& out) {
      { f.gradient(x, out) } -> std::convertible_to<LocalSum>;
    };
    explicit Model(F f_in) : f(std::move(f_in)) {}
    LocalSum local_value(const Array& x) const override { return f.local_value(x); }
    void prox(const Array& x, double tau, Array& out) const override { f.prox(x, tau, out); }
    bool has_gradient() const override { return smooth; }
    LocalSum gradient([[maybe_unused]] const Array& x, [[maybe_unused]] Array& out) const override {
      if constexpr (smooth)
        return f.gradient(x, out);
      else
        return {};
    }
    F f;
  };
  std::shared_ptr<const Interface> self_;
};

}  // namespace shoal::solver
