// SPDX-License-Identifier: Apache-2.0
// Linear operators between distributed arrays: the concept, its erased form, and the algebra.
//
// An operator maps arrays of layout domain() and element type D to arrays of layout range() and element type
// R. Operators are immutable in what they mean; they may keep memory to work in, so one operator is applied
// by one thread at a time. Every application is collective over communicator().
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "shoal/array/distributed_array.h"

namespace shoal::linop {

using array::DistributedArray;
using array::Index;
using array::is_complex;
using array::Layout;
using array::Rank;
using array::Real;
using array::Shape;

/// What every operator provides. apply() overwrites `y` and never reads it; apply_adjoint() likewise `x`.
/// <A x, y> = <x, A^H y> holds for dot() of shoal::array; for operators between real and complex arrays in
/// its real part.
template <class Op>
concept LinearOperator = requires(const Op& op, const DistributedArray<typename Op::domain_type>& x_in,
                                  DistributedArray<typename Op::range_type>& y_out,
                                  const DistributedArray<typename Op::range_type>& y_in,
                                  DistributedArray<typename Op::domain_type>& x_out) {
  typename Op::domain_type;
  typename Op::range_type;
  { op.communicator() } -> std::convertible_to<const comm::Communicator&>;
  { op.domain() } -> std::convertible_to<const Layout&>;
  { op.range() } -> std::convertible_to<const Layout&>;
  op.apply(x_in, y_out);
  op.apply_adjoint(y_in, x_out);
};

/// What is done to elements on the way of an application, while the caches hold them, so that they need not
/// pass through memory once more. Elements are counted within local(). Each element is told once; in which
/// pieces depends on layouts and ranks alone. An empty function does nothing. An operator that has
/// apply(x, y, way), apply_adjoint(y, x, way) or both calls these functions piece by piece; around any other
/// they are called for all elements at once.
template <class Out>
struct OnTheWay {
  /// Before the input's elements are read; may set them (they are the caller's own array).
  std::function<void(std::size_t first, std::size_t count)> in{};
  /// When the output's elements are computed: `elements` are they, wherever they are now; may change them.
  std::function<void(std::size_t first, std::size_t count, Out* elements)> out{};
};

/// Any operator, behind one type. Copies are cheap and share the operator. The checks are here, once, so that
/// operators need none: layouts are compared (both are named), memory that is shared between input and output
/// throws.
template <class D, class R = D>
class AnyOperator {
 public:
  using domain_type = D;
  using range_type = R;

  template <LinearOperator Op>
  requires(!std::same_as<std::remove_cvref_t<Op>, AnyOperator> && std::same_as<typename Op::domain_type, D> &&
           std::same_as<typename Op::range_type, R>) AnyOperator(Op op)
      : self_(std::make_shared<Model<Op>>(std::move(op))) {}

  const comm::Communicator& communicator() const { return self_->communicator(); }
  const Layout& domain() const { return self_->domain(); }
  const Layout& range() const { return self_->range(); }

  /// y = A x
  void apply(const DistributedArray<D>& x, DistributedArray<R>& y) const;
  /// x = A^H y
  void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const;
  /// The same with something done on the way.
  void apply(const DistributedArray<D>& x, DistributedArray<R>& y, const OnTheWay<R>& way) const;
  void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x, const OnTheWay<D>& way) const;
  /// The same into a new array.
  DistributedArray<R> operator()(const DistributedArray<D>& x) const;
  DistributedArray<D> adjoint_of(const DistributedArray<R>& y) const;

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual const comm::Communicator& communicator() const = 0;
    virtual const Layout& domain() const = 0;
    virtual const Layout& range() const = 0;
    virtual void apply(const DistributedArray<D>& x, DistributedArray<R>& y) const = 0;
    virtual void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const = 0;
    virtual void apply(const DistributedArray<D>& x, DistributedArray<R>& y,
                       const OnTheWay<R>& way) const = 0;
    virtual void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x,
                               const OnTheWay<D>& way) const = 0;
  };
  template <class Op>
  struct Model final : Interface {
    explicit Model(Op op_in) : op(std::move(op_in)) {}
    const comm::Communicator& communicator() const override { return op.communicator(); }
    const Layout& domain() const override { return op.domain(); }
    const Layout& range() const override { return op.range(); }
    void apply(const DistributedArray<D>& x, DistributedArray<R>& y) const override { op.apply(x, y); }
    void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const override {
      op.apply_adjoint(y, x);
    }
    void apply(const DistributedArray<D>& x, DistributedArray<R>& y, const OnTheWay<R>& way) const override {
      if constexpr (requires { op.apply(x, y, way); })
        op.apply(x, y, way);
      else
        around(x, y, way, [&] { op.apply(x, y); });
    }
    void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x,
                       const OnTheWay<D>& way) const override {
      if constexpr (requires { op.apply_adjoint(y, x, way); })
        op.apply_adjoint(y, x, way);
      else
        around(y, x, way, [&] { op.apply_adjoint(y, x); });
    }
    template <class In, class Out, class Work>
    static void around(const DistributedArray<In>& in, DistributedArray<Out>& out, const OnTheWay<Out>& way,
                       const Work& work) {
      if (way.in) way.in(0, in.local().size());
      work();
      if (way.out) way.out(0, out.local().size(), out.local().data());
    }
    Op op;
  };
  std::shared_ptr<const Interface> self_;
};

// Algebra. All lazy: an application of the result applies its parts, and the memory that it needs between
// them is allocated by the first application and kept. Sums and products check at construction that layouts
// fit. Deduction: write AnyOperator<double>(op) once, then 2.0 * A + B.

/// A^H
template <class D, class R>
AnyOperator<R, D> adjoint(const AnyOperator<D, R>& a);
/// A^T: x -> conj(A^H conj x)
template <class D, class R>
AnyOperator<R, D> transpose(const AnyOperator<D, R>& a);
/// conj(A): x -> conj(A conj x)
template <class D, class R>
AnyOperator<D, R> conj(const AnyOperator<D, R>& a);
template <class D, class R>
AnyOperator<D, R> operator+(const AnyOperator<D, R>& a, const AnyOperator<D, R>& b);
template <class D, class R>
AnyOperator<D, R> operator-(const AnyOperator<D, R>& a, const AnyOperator<D, R>& b);
template <class D, class R>
AnyOperator<D, R> operator-(const AnyOperator<D, R>& a);
template <class D, class R>
AnyOperator<D, R> operator*(std::type_identity_t<R> factor, const AnyOperator<D, R>& a);
/// The product: first b, then a.
template <class D, class M, class R>
AnyOperator<D, R> operator*(const AnyOperator<M, R>& a, const AnyOperator<D, M>& b);
/// A applied n times, n >= 0; domain and range are equal.
template <class T>
AnyOperator<T> power(const AnyOperator<T>& a, int n);

template <class T>
AnyOperator<T> identity(const comm::Communicator& communicator, const Layout& layout);
/// The same operator for arrays whose layouts are named otherwise but hold as many elements on each rank,
/// such as a 3-D array split along its first axis instead of its elements in a row. Moves nothing.
template <class D, class R>
AnyOperator<D, R> reshaped(const AnyOperator<D, R>& a, const Layout& domain, const Layout& range);

/// y is x in layout `to`, in global C order: between any two layouts of as many elements, by one all_to_all
/// (none from replicas). Its adjoint moves back. For arrays that lie otherwise than an operator wants them:
///   redistribution<double>(c, a.range(), data) * a * redistribution<double>(c, model, a.domain())
/// Memory is kept where the shapes are equal, else allocated each time.
template <class T>
AnyOperator<T> redistribution(const comm::Communicator& communicator, const Layout& from, const Layout& to);

/// What dot_test() finds; `passed` is the same on every rank.
struct DotTest {
  std::complex<double> forward;  // <A x, y>
  std::complex<double> adjoint;  // <x, A^H y>
  double error = 0;              // their distance, relative to the larger of |A x| |y| and |x| |A^H y|
  bool passed = false;           // error <= tolerance
};
/// Collective. Random x and y from `seed`; compares real and imaginary parts. Between real and complex
/// arrays, and if `linear_over_reals`, the real part alone: such operators are linear over the reals only.
/// The outputs hold NaN before, so an operator that reads or leaves out an element fails. `tolerance` 0 takes
/// 100 times the precision of the type.
template <class D, class R>
DotTest dot_test(const AnyOperator<D, R>& a, std::uint64_t seed = 1, double tolerance = 0,
                 bool linear_over_reals = is_complex<D> != is_complex<R>);

}  // namespace shoal::linop
