// SPDX-License-Identifier: Apache-2.0
// Element-wise algebra without temporaries: an operator makes a small value that says what to compute, and
// assigning it to an array computes all of it in one pass (expression_apply.h).
//
//   z = 2.0 * x - conj(y) / 3.0 + 1.0;
//
// Operators: + - * / between arrays (element by element) and with scalars, unary minus; conj, abs, real,
// imag. Types: double wins over float, complex over real. A scalar makes a real array's expression complex,
// but never changes its precision: a float array times 0.1 stays float. Layouts are compared when the
// expression is made. An expression refers to its arrays, which must be there when it is assigned.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "shoal/array/layout.h"

namespace shoal::array {

template <class T>
class DistributedArray;

/// Whatever can be computed element by element: arrays and the nodes below.
template <class E>
class Expression {
 public:
  const E& self() const { return static_cast<const E&>(*this); }
};

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
/// double of complex<double>.
template <class T>
using Real = typename RealOf<T>::type;

template <class T>
inline constexpr bool is_complex = !std::is_same_v<T, Real<T>>;

/// The type of a value made of a T and a U: complex if one is, in the better precision.
template <class T, class U>
using Promoted =
    std::conditional_t<is_complex<T> || is_complex<U>, std::complex<std::common_type_t<Real<T>, Real<U>>>,
                       std::common_type_t<Real<T>, Real<U>>>;

/// What combines with arrays as one value: a number, real or complex.
template <class S>
concept Scalar = std::is_arithmetic_v<S> || std::is_same_v<S, std::complex<float>> ||
    std::is_same_v<S, std::complex<double>>;

/// The type that a scalar S takes beside elements T.
template <class T, class S>
using ScalarBeside = std::conditional_t<is_complex<S>, std::complex<Real<T>>, Real<T>>;

/// The same number in another type; complex to real is not offered.
template <class To, class From>
To converted(const From& value) {
  if constexpr (is_complex<From>) {
    static_assert(is_complex<To>);
    return To(static_cast<Real<To>>(value.real()), static_cast<Real<To>>(value.imag()));
  } else {
    return To(static_cast<Real<To>>(value));
  }
}

namespace expressions {

struct Add {
  template <class A, class B>
  static auto apply(const A& a, const B& b) {
    return a + b;
  }
};
struct Subtract {
  template <class A, class B>
  static auto apply(const A& a, const B& b) {
    return a - b;
  }
};
struct Multiply {
  // By the textbook formula: std::complex looks for infinities behind NaNs, which costs several times as
  // much.
  template <class A, class B>
  static auto apply(const A& a, const B& b) {
    if constexpr (is_complex<A> && is_complex<B>)
      return A(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    else
      return a * b;
  }
};
struct Divide {
  template <class A, class B>
  static auto apply(const A& a, const B& b) {
    return a / b;
  }
};
struct Negate {
  template <class A>
  static auto apply(const A& a) {
    return -a;
  }
};
struct Conjugate {
  template <class A>
  static A apply(const A& a) {
    if constexpr (is_complex<A>)
      return {a.real(), -a.imag()};
    else
      return a;
  }
};
struct Magnitude {
  template <class A>
  static auto apply(const A& a) {
    return std::abs(a);
  }
};
struct RealPart {
  template <class A>
  static auto apply(const A& a) {
    if constexpr (is_complex<A>)
      return a.real();
    else
      return a;
  }
};
struct ImaginaryPart {
  template <class A>
  static auto apply(const A& a) {
    if constexpr (is_complex<A>)
      return a.imag();
    else
      return A(0);
  }
};

/// An array's elements.
template <class T>
class Elements : public Expression<Elements<T>> {
 public:
  using value_type = T;
  explicit Elements(const DistributedArray<T>& array) : array_(&array), data_(array.local().data()) {}
  T at(std::size_t i) const { return data_[i]; }
  const Layout& layout() const { return array_->layout(); }
  /// The array whose communicator and mask a result takes.
  const auto& prototype() const { return *array_; }
  bool reads(const void* memory) const { return static_cast<const void*>(data_) == memory; }
  const T* data() const { return data_; }

 private:
  const DistributedArray<T>* array_;
  const T* data_;
};

template <class Op, class A>
class Unary : public Expression<Unary<Op, A>> {
 public:
  using value_type = decltype(Op::apply(std::declval<typename A::value_type>()));
  explicit Unary(const A& a) : a_(a) {}
  value_type at(std::size_t i) const { return Op::apply(a_.at(i)); }
  const Layout& layout() const { return a_.layout(); }
  const auto& prototype() const { return a_.prototype(); }
  bool reads(const void* memory) const { return a_.reads(memory); }
  const A& operand() const { return a_; }

 private:
  A a_;
};

template <class Op, class A, class B>
class Binary : public Expression<Binary<Op, A, B>> {
 public:
  using value_type = Promoted<typename A::value_type, typename B::value_type>;
  static constexpr bool subtracts = std::is_same_v<Op, Subtract>;
  static constexpr bool is_sum = subtracts || std::is_same_v<Op, Add>;
  Binary(const A& a, const B& b) : a_(a), b_(b) {
    require_equal(a.layout(), b.layout(), "element-wise algebra");
  }
  value_type at(std::size_t i) const { return Op::apply(promoted(a_.at(i)), promoted(b_.at(i))); }
  const Layout& layout() const { return a_.layout(); }
  const auto& prototype() const { return a_.prototype(); }
  bool reads(const void* memory) const { return a_.reads(memory) || b_.reads(memory); }
  const A& left() const { return a_; }
  const B& right() const { return b_; }

 private:
  // To the result's precision, but real stays real: real * complex is two products, not four.
  template <class V>
  static auto promoted(const V& value) {
    if constexpr (is_complex<V>)
      return converted<value_type>(value);
    else
      return converted<Real<value_type>>(value);
  }
  A a_;
  B b_;
};

/// A scalar that has taken a type beside an expression, whose layout it borrows.
template <class S, class A>
class Constant : public Expression<Constant<S, A>> {
 public:
  using value_type = S;
  Constant(S value, const A& beside) : value_(value), prototype_(&beside.prototype()) {}
  S at(std::size_t) const { return value_; }
  const Layout& layout() const { return prototype_->layout(); }
  const auto& prototype() const { return *prototype_; }
  bool reads(const void*) const { return false; }

 private:
  S value_;
  const std::remove_reference_t<decltype(std::declval<const A&>().prototype())>* prototype_;
};

template <class T>
Elements<T> node(const DistributedArray<T>& array) {
  return Elements<T>(array);
}
template <class E>
const E& node(const E& expression) {
  return expression;
}
/// What stands for an operand inside an expression: nodes by value, an array by a reference.
template <class E>
using Node = std::remove_cvref_t<decltype(node(std::declval<const E&>()))>;

template <class Op, class A>
auto unary(const A& a) {
  return Unary<Op, Node<A>>(node(a));
}
template <class Op, class A, class B>
auto binary(const A& a, const B& b) {
  return Binary<Op, Node<A>, Node<B>>(node(a), node(b));
}
template <class S, class A>
auto constant(S value, const A& beside) {
  using T = ScalarBeside<typename A::value_type, S>;
  return Constant<T, Node<A>>(converted<T>(value), node(beside));
}

}  // namespace expressions

template <class A, class B>
auto operator+(const Expression<A>& a, const Expression<B>& b) {
  return expressions::binary<expressions::Add>(a.self(), b.self());
}
template <class A, Scalar S>
auto operator+(const Expression<A>& a, S b) {
  return expressions::binary<expressions::Add>(a.self(), expressions::constant(b, a.self()));
}
template <class B, Scalar S>
auto operator+(S a, const Expression<B>& b) {
  return expressions::binary<expressions::Add>(expressions::constant(a, b.self()), b.self());
}
template <class A, class B>
auto operator-(const Expression<A>& a, const Expression<B>& b) {
  return expressions::binary<expressions::Subtract>(a.self(), b.self());
}
template <class A, Scalar S>
auto operator-(const Expression<A>& a, S b) {
  return expressions::binary<expressions::Subtract>(a.self(), expressions::constant(b, a.self()));
}
template <class B, Scalar S>
auto operator-(S a, const Expression<B>& b) {
  return expressions::binary<expressions::Subtract>(expressions::constant(a, b.self()), b.self());
}
template <class A, class B>
auto operator*(const Expression<A>& a, const Expression<B>& b) {
  return expressions::binary<expressions::Multiply>(a.self(), b.self());
}
template <class A, Scalar S>
auto operator*(const Expression<A>& a, S b) {
  return expressions::binary<expressions::Multiply>(a.self(), expressions::constant(b, a.self()));
}
template <class B, Scalar S>
auto operator*(S a, const Expression<B>& b) {
  return expressions::binary<expressions::Multiply>(expressions::constant(a, b.self()), b.self());
}
template <class A, class B>
auto operator/(const Expression<A>& a, const Expression<B>& b) {
  return expressions::binary<expressions::Divide>(a.self(), b.self());
}
template <class A, Scalar S>
auto operator/(const Expression<A>& a, S b) {
  return expressions::binary<expressions::Divide>(a.self(), expressions::constant(b, a.self()));
}
template <class B, Scalar S>
auto operator/(S a, const Expression<B>& b) {
  return expressions::binary<expressions::Divide>(expressions::constant(a, b.self()), b.self());
}
template <class A>
auto operator-(const Expression<A>& a) {
  return expressions::unary<expressions::Negate>(a.self());
}
template <class A>
auto conj(const Expression<A>& a) {
  return expressions::unary<expressions::Conjugate>(a.self());
}
template <class A>
auto abs(const Expression<A>& a) {
  return expressions::unary<expressions::Magnitude>(a.self());
}
template <class A>
auto real(const Expression<A>& a) {
  return expressions::unary<expressions::RealPart>(a.self());
}
template <class A>
auto imag(const Expression<A>& a) {
  return expressions::unary<expressions::ImaginaryPart>(a.self());
}

}  // namespace shoal::array
