// SPDX-License-Identifier: Apache-2.0
// [s Op; A], of which s may change between applications. (The sum of operators would pass once more over
// memory.)
#pragma once

#include <memory>
#include <optional>

#include "shoal/linop/linear_operator.h"

namespace shoal::solver {

using linop::AnyOperator;

/// From the domain of both to the stack of their ranges; no `a`: the identity.
template <class T>
AnyOperator<T> scaled_system(const AnyOperator<T>& op, const std::optional<AnyOperator<T>>& a,
                             std::shared_ptr<const double> scale);
/// s Op^H Op + I
template <class T>
AnyOperator<T> scaled_normal(const AnyOperator<T>& op, std::shared_ptr<const double> scale);

}  // namespace shoal::solver
