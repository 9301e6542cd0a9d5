// SPDX-License-Identifier: Apache-2.0
// Fredholm integral operator of the first kind, slice by slice: y[s] = G[s] x[s] for s = 0 .. slices-1, with
// G [slices, nx, ny], x [slices, ny, nz] and y [slices, nx, nz]. Of frequencies in multi-dimensional
// convolution, for example. In the adjoint each G[s] is conjugated and transposed; nothing is stored twice.
#pragma once

#include <cstdint>

#include "shoal/linop/linear_operator.h"

namespace shoal::linop {

/// How x and y lie on the ranks.
enum class Slices : std::uint8_t {
  split,      // as those of G: no communication
  replicated  // whole on every rank, which computes its own slices and gathers the others'
};

/// Keeps `kernel`, which is split along its first axis; each rank has any number of slices, also none. One
/// matrix product (a matrix-vector product where nz is 1) a slice. Replicated: one all_gather of exact parts
/// in either direction.
template <class T>
AnyOperator<T> fredholm(DistributedArray<T> kernel, Index nz = 1, Slices slices = Slices::split);

}  // namespace shoal::linop
