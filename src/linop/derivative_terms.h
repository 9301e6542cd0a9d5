// SPDX-License-Identifier: Apache-2.0
// Which differences along which axes make up each derivative, and the checks of their options. For arrays
// that are distributed and for those of one rank.
#pragma once

#include <vector>

#include "linop/stencil_sweep.h"

namespace shoal::linop {

std::vector<StencilTerm> first_derivative_terms(const Layout& layout, int axis,
                                                const FirstDerivative& options);
std::vector<StencilTerm> second_derivative_terms(const Layout& layout, int axis,
                                                 const SecondDerivative& options);
std::vector<StencilTerm> laplacian_terms(const Layout& layout, const Laplacian& options);
/// One output for each axis.
std::vector<StencilTerm> gradient_terms(const Layout& layout, const Gradient& options);

}  // namespace shoal::linop
