// SPDX-License-Identifier: Apache-2.0
// The inner loops of non-stationary convolution, for each instruction set.
#pragma once

#include "shoal/array/layout.h"

namespace shoal::linop::local {

using array::Index;

/// y[i * inner + c] = sum over k < taps of table[i * taps + k] x[(i + k) * inner + c], for i < length and
/// c < inner.
void gather_columns(const double* table, Index taps, Index length, Index inner, const double* x, double* y);
void gather_columns(const float* table, Index taps, Index length, Index inner, const float* x, float* y);

}  // namespace shoal::linop::local
