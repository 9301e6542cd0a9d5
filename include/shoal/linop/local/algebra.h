// SPDX-License-Identifier: Apache-2.0
// Sum, product and scaling of local operators (their adjoint is in local_operator.h). Lazy; sizes are checked
// at construction.
#pragma once

#include <type_traits>

#include "shoal/linop/local_operator.h"

namespace shoal::linop::local {

template <class T>
AnyLocalOperator<T> sum(const AnyLocalOperator<T>& a, const AnyLocalOperator<T>& b);
/// First b, then a.
template <class T>
AnyLocalOperator<T> product(const AnyLocalOperator<T>& a, const AnyLocalOperator<T>& b);
template <class T>
AnyLocalOperator<T> scaled(std::type_identity_t<T> factor, const AnyLocalOperator<T>& a);

}  // namespace shoal::linop::local
