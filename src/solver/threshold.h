// SPDX-License-Identifier: Apache-2.0
// Element-wise minimisers of |z - x|^2 / 2 + t penalty(z), and the penalties.
#pragma once

#include <cstddef>

#include "shoal/solver/ista.h"

namespace shoal::solver {

/// x[i] becomes the minimiser. Magnitudes of complex elements are taken as sqrt(re^2 + im^2).
template <class T>
void apply_threshold(Threshold kind, double t, T* x, std::size_t n);

/// |x|_1, the number of non-zeros, or the sum of sqrt|x_i|.
template <class T>
double penalty(Threshold kind, const T* x, std::size_t n);

}  // namespace shoal::solver
