// SPDX-License-Identifier: Apache-2.0
// Sums, products and the other operators that are made of operators.
#include <algorithm>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "linop/workspace.h"
#include "shoal/base/error.h"
#include "shoal/linop/linear_operator.h"

namespace shoal::linop {
namespace {

template <class D, class R>
struct Adjoint {
  using domain_type = R;
  using range_type = D;
  const comm::Communicator& communicator() const { return a.communicator(); }
  const Layout& domain() const { return a.range(); }
  const Layout& range() const { return a.domain(); }
  void apply(const DistributedArray<R>& x, DistributedArray<D>& y) const { a.apply_adjoint(x, y); }
  void apply_adjoint(const DistributedArray<D>& y, DistributedArray<R>& x) const { a.apply(y, x); }
  void apply(const DistributedArray<R>& x, DistributedArray<D>& y, const OnTheWay<D>& way) const {
    a.apply_adjoint(x, y, way);
  }
  void apply_adjoint(const DistributedArray<D>& y, DistributedArray<R>& x, const OnTheWay<R>& way) const {
    a.apply(y, x, way);
  }
  AnyOperator<D, R> a;
};

// conj(x) in `memory`; x itself where it is real.
template <class T>
const DistributedArray<T>& conjugated(const DistributedArray<T>& x, Workspace<T>& memory) {
  if constexpr (is_complex<T>) {
    DistributedArray<T>& copy = memory.get(x.communicator(), x.layout());
    std::ranges::copy(x.local(), copy.local().begin());
    conjugate(copy);
    return copy;
  } else {
    return x;
  }
}

template <class T>
void conjugate_complex(DistributedArray<T>& x) {
  if constexpr (is_complex<T>) conjugate(x);
}

template <class D, class R>
struct Conjugate {
  using domain_type = D;
  using range_type = R;
  const comm::Communicator& communicator() const { return a.communicator(); }
  const Layout& domain() const { return a.domain(); }
  const Layout& range() const { return a.range(); }
  void apply(const DistributedArray<D>& x, DistributedArray<R>& y) const {
    a.apply(conjugated(x, in_domain), y);
    conjugate_complex(y);
  }
  void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const {
    a.apply_adjoint(conjugated(y, in_range), x);
    conjugate_complex(x);
  }
  AnyOperator<D, R> a;
  mutable Workspace<D> in_domain{};
  mutable Workspace<R> in_range{};
};

// A + sign B
template <class D, class R>
struct Sum {
  using domain_type = D;
  using range_type = R;
  const comm::Communicator& communicator() const { return a.communicator(); }
  const Layout& domain() const { return a.domain(); }
  const Layout& range() const { return a.range(); }
  void apply(const DistributedArray<D>& x, DistributedArray<R>& y) const {
    DistributedArray<R>& term = in_range.get(communicator(), range());
    a.apply(x, y);
    b.apply(x, term);
    axpby(R(static_cast<Real<R>>(sign)), term, R(1), y);
  }
  void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const {
    DistributedArray<D>& term = in_domain.get(communicator(), domain());
    a.apply_adjoint(y, x);
    b.apply_adjoint(y, term);
    axpby(D(static_cast<Real<D>>(sign)), term, D(1), x);
  }
  AnyOperator<D, R> a, b;
  int sign;
  mutable Workspace<D> in_domain{};
  mutable Workspace<R> in_range{};
};

template <class D, class R>
struct Scaled {
  using domain_type = D;
  using range_type = R;
  const comm::Communicator& communicator() const { return a.communicator(); }
  const Layout& domain() const { return a.domain(); }
  const Layout& range() const { return a.range(); }
  void apply(const DistributedArray<D>& x, DistributedArray<R>& y) const {
    a.apply(x, y);
    y *= factor;
  }
  // A^H conj(factor) y. Only a real factor commutes with every A^H: some are linear over the reals alone.
  void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const {
    if (std::imag(factor) == 0) {
      a.apply_adjoint(y, x);
      x *= D(std::real(factor));
    } else if constexpr (is_complex<R>) {
      DistributedArray<R>& scaled = in_range.get(communicator(), range());
      axpby(std::conj(factor), y, R(0), scaled);
      a.apply_adjoint(scaled, x);
    }
  }
  AnyOperator<D, R> a;
  R factor;
  mutable Workspace<R> in_range{};
};

template <class D, class M, class R>
struct Product {
  using domain_type = D;
  using range_type = R;
  const comm::Communicator& communicator() const { return a.communicator(); }
  const Layout& domain() const { return b.domain(); }
  const Layout& range() const { return a.range(); }
  void apply(const DistributedArray<D>& x, DistributedArray<R>& y) const {
    DistributedArray<M>& middle = between.get(communicator(), b.range());
    b.apply(x, middle);
    a.apply(middle, y);
  }
  void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const {
    DistributedArray<M>& middle = between.get(communicator(), b.range());
    a.apply_adjoint(y, middle);
    b.apply_adjoint(middle, x);
  }
  AnyOperator<M, R> a;
  AnyOperator<D, M> b;
  mutable Workspace<M> between{};
};

template <class T>
struct Power {
  using domain_type = T;
  using range_type = T;
  const comm::Communicator& communicator() const { return a.communicator(); }
  const Layout& domain() const { return a.domain(); }
  const Layout& range() const { return a.range(); }
  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const {
    repeat(x, y, [this](const DistributedArray<T>& from, DistributedArray<T>& to) { a.apply(from, to); });
  }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    repeat(y, x,
           [this](const DistributedArray<T>& from, DistributedArray<T>& to) { a.apply_adjoint(from, to); });
  }
  // To and fro between `out` and the workspace, so that the last step ends in `out`.
  template <class Step>
  void repeat(const DistributedArray<T>& in, DistributedArray<T>& out, Step step) const {
    DistributedArray<T>* to = n % 2 == 1 ? &out : &other.get(communicator(), domain());
    const DistributedArray<T>* from = &in;
    for (int i = 0; i < n; ++i) {
      step(*from, *to);
      from = to;
      to = to == &out ? &other.get(communicator(), domain()) : &out;
    }
  }
  AnyOperator<T> a;
  int n;  // >= 2
  mutable Workspace<T> other{};
};

template <class T>
struct Identity {
  using domain_type = T;
  using range_type = T;
  const comm::Communicator& communicator() const { return group; }
  const Layout& domain() const { return layout; }
  const Layout& range() const { return layout; }
  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const {
    std::ranges::copy(x.local(), y.local().begin());
  }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const { apply(y, x); }
  comm::Communicator group;
  Layout layout;
};

// `x` by another name. The const of a const array is put back by the caller's own const.
template <class T>
DistributedArray<T> renamed(const DistributedArray<T>& x, const Layout& layout) {
  return DistributedArray<T>::adopt(x.communicator(), layout,
                                    {const_cast<T*>(x.local().data()), x.local().size()});
}

template <class D, class R>
struct Reshaped {
  using domain_type = D;
  using range_type = R;
  const comm::Communicator& communicator() const { return a.communicator(); }
  const Layout& domain() const { return outer_domain; }
  const Layout& range() const { return outer_range; }
  void apply(const DistributedArray<D>& x, DistributedArray<R>& y) const {
    const DistributedArray<D> in = renamed(x, a.domain());
    DistributedArray<R> out = renamed(y, a.range());
    a.apply(in, out);
  }
  void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const {
    const DistributedArray<R> in = renamed(y, a.range());
    DistributedArray<D> out = renamed(x, a.domain());
    a.apply_adjoint(in, out);
  }
  AnyOperator<D, R> a;
  Layout outer_domain, outer_range;
};

void require_equal_parts(const Layout& a, const Layout& b) {
  bool equal = a.ranks() == b.ranks() && a.size() == b.size();
  for (Rank rank = 0; equal && rank < a.ranks(); ++rank) equal = a.local_size(rank) == b.local_size(rank);
  if (!equal)
    fail(ErrorCode::invalid_argument,
         fmt::format(
             "an operator cannot be reshaped from {} to {}: they must hold as many elements on each rank",
             a.describe(), b.describe()));
}

template <class D, class R>
AnyOperator<D, R> sum(const AnyOperator<D, R>& a, const AnyOperator<D, R>& b, int sign) {
  require_equal(a.domain(), b.domain(), "the domains of the operators of a sum");
  require_equal(a.range(), b.range(), "the ranges of the operators of a sum");
  return Sum<D, R>{a, b, sign};
}

}  // namespace

template <class D, class R>
AnyOperator<R, D> adjoint(const AnyOperator<D, R>& a) {
  return Adjoint<D, R>{a};
}

template <class D, class R>
AnyOperator<R, D> transpose(const AnyOperator<D, R>& a) {
  return conj(adjoint(a));
}

template <class D, class R>
AnyOperator<D, R> conj(const AnyOperator<D, R>& a) {
  if constexpr (is_complex<D> || is_complex<R>)
    return Conjugate<D, R>{a};
  else
    return a;
}

template <class D, class R>
AnyOperator<D, R> operator+(const AnyOperator<D, R>& a, const AnyOperator<D, R>& b) {
  return sum(a, b, 1);
}

template <class D, class R>
AnyOperator<D, R> operator-(const AnyOperator<D, R>& a, const AnyOperator<D, R>& b) {
  return sum(a, b, -1);
}

template <class D, class R>
AnyOperator<D, R> operator-(const AnyOperator<D, R>& a) {
  return Scaled<D, R>{a, R(-1)};
}

template <class D, class R>
AnyOperator<D, R> operator*(std::type_identity_t<R> factor, const AnyOperator<D, R>& a) {
  return Scaled<D, R>{a, factor};
}

template <class D, class M, class R>
AnyOperator<D, R> operator*(const AnyOperator<M, R>& a, const AnyOperator<D, M>& b) {
  require_equal(a.domain(), b.range(), "the domain and the range that meet in a product of operators");
  return Product<D, M, R>{a, b};
}

template <class T>
AnyOperator<T> power(const AnyOperator<T>& a, int n) {
  if (n < 0)
    fail(ErrorCode::invalid_argument,
         fmt::format("the power {} of an operator is not defined; use 0 or more", n));
  require_equal(a.domain(), a.range(), "the domain and the range of an operator that a power is taken of");
  if (n == 0) return identity<T>(a.communicator(), a.domain());
  if (n == 1) return a;
  return Power<T>{a, n};
}

template <class T>
AnyOperator<T> identity(const comm::Communicator& communicator, const Layout& layout) {
  return Identity<T>{communicator, layout};
}

template <class D, class R>
AnyOperator<D, R> reshaped(const AnyOperator<D, R>& a, const Layout& domain, const Layout& range) {
  require_equal_parts(a.domain(), domain);
  require_equal_parts(a.range(), range);
  return Reshaped<D, R>{a, domain, range};
}

#define SHOAL_INSTANTIATE(D, R)                                                             \
  template AnyOperator<R, D> adjoint(const AnyOperator<D, R>&);                             \
  template AnyOperator<R, D> transpose(const AnyOperator<D, R>&);                           \
  template AnyOperator<D, R> conj(const AnyOperator<D, R>&);                                \
  template AnyOperator<D, R> operator+(const AnyOperator<D, R>&, const AnyOperator<D, R>&); \
  template AnyOperator<D, R> operator-(const AnyOperator<D, R>&, const AnyOperator<D, R>&); \
  template AnyOperator<D, R> operator-(const AnyOperator<D, R>&);                           \
  template AnyOperator<D, R> operator*(std::type_identity_t<R>, const AnyOperator<D, R>&);  \
  template AnyOperator<D, R> operator*(const AnyOperator<D, R>&, const AnyOperator<D, D>&); \
  template AnyOperator<D, R> reshaped(const AnyOperator<D, R>&, const Layout&, const Layout&);
SHOAL_LINOP_PAIRS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

// The products whose last factor changes between real and complex.
#define SHOAL_INSTANTIATE(T)                                                                               \
  template AnyOperator<std::complex<T>, T> operator*(const AnyOperator<T, T>&,                             \
                                                     const AnyOperator<std::complex<T>, T>&);              \
  template AnyOperator<T, std::complex<T>> operator*(const AnyOperator<std::complex<T>, std::complex<T>>&, \
                                                     const AnyOperator<T, std::complex<T>>&);              \
  template AnyOperator<T, T> operator*(const AnyOperator<std::complex<T>, T>&,                             \
                                       const AnyOperator<T, std::complex<T>>&);                            \
  template AnyOperator<std::complex<T>, std::complex<T>> operator*(const AnyOperator<T, std::complex<T>>&, \
                                                                   const AnyOperator<std::complex<T>, T>&);
SHOAL_INSTANTIATE(float)
SHOAL_INSTANTIATE(double)
#undef SHOAL_INSTANTIATE

#define SHOAL_INSTANTIATE(T)                                 \
  template AnyOperator<T> power(const AnyOperator<T>&, int); \
  template AnyOperator<T> identity(const comm::Communicator&, const Layout&);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
