// SPDX-License-Identifier: Apache-2.0
// The checks that stand before every operator, distributed and local.
#include <functional>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "shoal/base/error.h"
#include "shoal/linop/linear_operator.h"
#include "shoal/linop/local_operator.h"

namespace shoal::linop {
namespace {

template <class In, class Out>
bool overlap(std::span<const In> in, std::span<Out> out) {
  const std::less<const void*> before;
  return !in.empty() && !out.empty() && before(in.data(), out.data() + out.size()) &&
         before(out.data(), in.data() + in.size());
}

template <class In, class Out>
void check(const DistributedArray<In>& in, const Layout& domain, const DistributedArray<Out>& out,
           std::span<Out> out_elements, const Layout& range) {
  require_equal(in.layout(), domain, "an operator's input and what it is made for");
  require_equal(out.layout(), range, "an operator's output and what it is made for");
  if (overlap(in.local(), out_elements))
    fail(ErrorCode::invalid_argument,
         fmt::format("an operator's input and output share memory on rank {}; apply it into another array",
                     in.rank()));
}

template <class T>
void check_local(std::span<const T> in, Index in_expected, std::span<T> out, Index out_expected) {
  if (static_cast<Index>(in.size()) != in_expected || static_cast<Index>(out.size()) != out_expected)
    fail(ErrorCode::invalid_argument,
         fmt::format("a local operator from {} to {} elements was applied to {} and {}", in_expected,
                     out_expected, in.size(), out.size()));
  if (overlap(in, out))
    fail(ErrorCode::invalid_argument,
         "a local operator's input and output share memory; apply it into another array");
}

template <class T>
struct LocalAdjoint {
  using value_type = T;
  Index rows() const { return op.cols(); }
  Index cols() const { return op.rows(); }
  void apply(std::span<const T> x, std::span<T> y) const { op.apply_adjoint(x, y); }
  void apply_adjoint(std::span<const T> y, std::span<T> x) const { op.apply(y, x); }
  AnyLocalOperator<T> op;
};

}  // namespace

template <class D, class R>
void AnyOperator<D, R>::apply(const DistributedArray<D>& x, DistributedArray<R>& y) const {
  check(x, domain(), y, y.local(), range());
  self_->apply(x, y);
}

template <class D, class R>
void AnyOperator<D, R>::apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const {
  check(y, range(), x, x.local(), domain());
  self_->apply_adjoint(y, x);
}

template <class D, class R>
void AnyOperator<D, R>::apply(const DistributedArray<D>& x, DistributedArray<R>& y,
                              const OnTheWay<R>& way) const {
  check(x, domain(), y, y.local(), range());
  self_->apply(x, y, way);
}

template <class D, class R>
void AnyOperator<D, R>::apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x,
                                      const OnTheWay<D>& way) const {
  check(y, range(), x, x.local(), domain());
  self_->apply_adjoint(y, x, way);
}

template <class D, class R>
DistributedArray<R> AnyOperator<D, R>::operator()(const DistributedArray<D>& x) const {
  DistributedArray<R> y(communicator(), range(), array::uninitialised);
  y.share_mask(x);
  apply(x, y);
  return y;
}

template <class D, class R>
DistributedArray<D> AnyOperator<D, R>::adjoint_of(const DistributedArray<R>& y) const {
  DistributedArray<D> x(communicator(), domain(), array::uninitialised);
  x.share_mask(y);
  apply_adjoint(y, x);
  return x;
}

template <class T>
void AnyLocalOperator<T>::apply(std::span<const T> x, std::span<T> y) const {
  check_local(x, cols(), y, rows());
  self_->apply(x, y);
}

template <class T>
void AnyLocalOperator<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  check_local(y, rows(), x, cols());
  self_->apply_adjoint(y, x);
}

template <class T>
AnyLocalOperator<T> adjoint(const AnyLocalOperator<T>& a) {
  return LocalAdjoint<T>{a};
}

#define SHOAL_INSTANTIATE(D, R) template class AnyOperator<D, R>;
SHOAL_LINOP_PAIRS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE
#define SHOAL_INSTANTIATE(T)          \
  template class AnyLocalOperator<T>; \
  template AnyLocalOperator<T> adjoint(const AnyLocalOperator<T>& a);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
