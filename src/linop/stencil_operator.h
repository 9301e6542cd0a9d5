// SPDX-License-Identifier: Apache-2.0
// Operators that are sums of differences along axes: all of derivatives.h.
#pragma once

#include <vector>

#include "linop/stencil_sweep.h"

namespace shoal::linop {

/// From arrays of `layout` to as many as the terms have outputs: one array, or the members of a stack if
/// `to_stack`. The terms' input is 0.
template <class T>
AnyOperator<T> stencil_operator(const comm::Communicator& communicator, const Layout& layout,
                                const std::vector<StencilTerm>& terms, bool to_stack = false);

}  // namespace shoal::linop
