// SPDX-License-Identifier: Apache-2.0
// How the methods begin: the residual, in units in which the data is near 1.
//
// Residuals and what follows from them are kept divided by a power of two near |b|, which rounds nothing; x
// is kept as it is. So squares of norms neither vanish nor overflow where |b| is 1e-200, and a problem scaled
// by a power of two takes the same steps to the bit.
#pragma once

#include "shoal/linop/linear_operator.h"
#include "solver/space.h"

namespace shoal::solver {

using linop::AnyOperator;

struct Start {
  double scale = 1;          // the residual's unit
  double data_norm = 0;      // |b| in it
  double residual_norm = 0;  // |b - A x0| in it
};

/// r = (b - A x0) / scale; `x0` is null for zero. Collective. Where a norm is not finite, scale is 1.
template <class T>
Start begin_residual(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>* x0,
                     const Space<T>& range, DistributedArray<T>& r);

/// Where to look for what makes a Start not finite.
template <class T>
const DistributedArray<T>& suspect(const Start& start, const DistributedArray<T>& b,
                                   const DistributedArray<T>& r);

}  // namespace shoal::solver
