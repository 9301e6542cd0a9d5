// SPDX-License-Identifier: Apache-2.0
// Derivatives of distributed arrays.
#include "shoal/linop/derivatives.h"

#include "linop/derivative_terms.h"
#include "linop/instantiate.h"
#include "linop/stencil_operator.h"

namespace shoal::linop {

template <class T>
AnyOperator<T> first_derivative(const comm::Communicator& communicator, const Layout& layout, int axis,
                                const FirstDerivative& options) {
  return stencil_operator<T>(communicator, layout, first_derivative_terms(layout, axis, options));
}

template <class T>
AnyOperator<T> second_derivative(const comm::Communicator& communicator, const Layout& layout, int axis,
                                 const SecondDerivative& options) {
  return stencil_operator<T>(communicator, layout, second_derivative_terms(layout, axis, options));
}

template <class T>
AnyOperator<T> laplacian(const comm::Communicator& communicator, const Layout& layout,
                         const Laplacian& options) {
  return stencil_operator<T>(communicator, layout, laplacian_terms(layout, options));
}

template <class T>
AnyOperator<T> gradient(const comm::Communicator& communicator, const Layout& layout,
                        const Gradient& options) {
  return stencil_operator<T>(communicator, layout, gradient_terms(layout, options), /*to_stack=*/true);
}

#define SHOAL_INSTANTIATE(T)                                                                     \
  template AnyOperator<T> first_derivative(const comm::Communicator&, const Layout&, int,        \
                                           const FirstDerivative&);                              \
  template AnyOperator<T> second_derivative(const comm::Communicator&, const Layout&, int,       \
                                            const SecondDerivative&);                            \
  template AnyOperator<T> laplacian(const comm::Communicator&, const Layout&, const Laplacian&); \
  template AnyOperator<T> gradient(const comm::Communicator&, const Layout&, const Gradient&);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
