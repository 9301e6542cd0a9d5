// SPDX-License-Identifier: Apache-2.0
// Between the transform of pairs of reals, taken as complex numbers, and the half spectrum of the reals; each
// row of a panel is a frequency, its columns are transforms of their own.
#pragma once

#include "shoal/array/layout.h"

namespace shoal::linop {

/// In place: n rows of cache lines become n + 1. `roots`, n / 2 + 1 cosines and sines of k turns over 2 n, in
/// pairs. The first and the last bin are scaled by `edge`, the others by `inner`.
void split_spectrum(double* panel, const double* roots, array::Index n, double edge, double inner);
void split_spectrum(float* panel, const float* roots, array::Index n, float edge, float inner);
/// Back, such that the transform of n pairs gives 2 n times the reals. Imaginary parts at the edges are no
/// part of the spectrum.
void join_spectrum(double* panel, const double* roots, array::Index n, double edge, double inner);
void join_spectrum(float* panel, const float* roots, array::Index n, float edge, float inner);

}  // namespace shoal::linop
