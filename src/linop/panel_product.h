// SPDX-License-Identifier: Apache-2.0
// A square matrix times a narrow panel that stays in the first-level cache.
#pragma once

#include "shoal/array/layout.h"

namespace shoal::linop {

inline constexpr array::Index panel_width = 16;

/// y [n, panel_width] = matrix [n, n] x [n, panel_width]. The matrix may lie anywhere, the panels on cache
/// lines.
void multiply_panel(const double* matrix, array::Index n, const double* x, double* y);
void multiply_panel(const float* matrix, array::Index n, const float* x, float* y);

}  // namespace shoal::linop
