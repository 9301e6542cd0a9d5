// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/local/derivatives.h"

#include <algorithm>

#include "linop/derivative_terms.h"
#include "linop/instantiate.h"
#include "linop/streaming_copy.h"

namespace shoal::linop::local {
namespace {

using array::is_complex;
using array::Real;

// One direction: a sweep over arrays of `size` elements each, which lie one after the other.
template <class T>
class Sweep {
 public:
  Sweep(const Layout& layout, const std::vector<StencilTerm>& terms)
      : size_(static_cast<std::size_t>(layout.size())),
        sweep_(layout.block(0), is_complex<T> ? 2 : 1, terms, std::vector<PlaneWidths>(terms.size()),
               count(terms, &StencilTerm::output) * size_ * sizeof(T) >= streaming_bytes) {
    memory_.inputs.resize(count(terms, &StencilTerm::input));
    memory_.outputs.resize(count(terms, &StencilTerm::output));
    memory_.planes.resize(terms.size());
  }

  void run(std::span<const T> x, std::span<T> y) {
    for (std::size_t i = 0; i < memory_.inputs.size(); ++i)
      memory_.inputs[i] = reals<T>(x.subspan(i * size_, size_));
    for (std::size_t i = 0; i < memory_.outputs.size(); ++i)
      memory_.outputs[i] = reals<T>(y.subspan(i * size_, size_));
    sweep_.run(sweep_.inside(), memory_);
  }

  std::size_t inputs() const { return memory_.inputs.size(); }

 private:
  static std::size_t count(const std::vector<StencilTerm>& terms, std::size_t StencilTerm::*number) {
    return 1 + (*std::ranges::max_element(terms, {}, number)).*number;
  }

  std::size_t size_;
  StencilSweep<Real<T>> sweep_;
  SweepMemory<Real<T>> memory_;
};

template <class T>
class Derivative {
 public:
  using value_type = T;
  Derivative(const Layout& layout, const std::vector<StencilTerm>& terms)
      : size_(layout.size()), forward_(layout, terms), adjoint_(layout, transposed(terms)) {}

  Index rows() const { return static_cast<Index>(adjoint_.inputs()) * size_; }
  Index cols() const { return size_; }
  void apply(std::span<const T> x, std::span<T> y) const { forward_.run(x, y); }
  void apply_adjoint(std::span<const T> y, std::span<T> x) const { adjoint_.run(y, x); }

 private:
  Index size_;
  mutable Sweep<T> forward_, adjoint_;
};

Layout whole(const Shape& dims) { return Layout::split(dims, 1); }

}  // namespace

template <class T>
AnyLocalOperator<T> first_derivative(const Shape& dims, int axis, const FirstDerivative& options) {
  return Derivative<T>(whole(dims), first_derivative_terms(whole(dims), axis, options));
}
template <class T>
AnyLocalOperator<T> second_derivative(const Shape& dims, int axis, const SecondDerivative& options) {
  return Derivative<T>(whole(dims), second_derivative_terms(whole(dims), axis, options));
}
template <class T>
AnyLocalOperator<T> laplacian(const Shape& dims, const Laplacian& options) {
  return Derivative<T>(whole(dims), laplacian_terms(whole(dims), options));
}
template <class T>
AnyLocalOperator<T> gradient(const Shape& dims, const Gradient& options) {
  return Derivative<T>(whole(dims), gradient_terms(whole(dims), options));
}

#define SHOAL_INSTANTIATE(T)                                                                  \
  template AnyLocalOperator<T> first_derivative(const Shape&, int, const FirstDerivative&);   \
  template AnyLocalOperator<T> second_derivative(const Shape&, int, const SecondDerivative&); \
  template AnyLocalOperator<T> laplacian(const Shape&, const Laplacian&);                     \
  template AnyLocalOperator<T> gradient(const Shape&, const Gradient&);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop::local
