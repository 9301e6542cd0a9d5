// SPDX-License-Identifier: Apache-2.0
// Convolutions of distributed arrays.
#pragma once

#include "shoal/linop/linear_operator.h"
#include "shoal/linop/local/convolution.h"

namespace shoal::linop {

/// y[j] = sum over i of h_i[j - i + length/2] x[i] along `axis` (negative counts from the end), with the
/// filter h_i of `bank` for sample i. Any layout; where the axis is split, one neighbour exchange of the
/// bank's reach on both sides, in either direction. (pylops-mpi: MPINonStationaryConvolve1D.)
template <class T>
AnyOperator<T> nonstationary_convolution(const comm::Communicator& communicator, const Layout& layout,
                                         const local::FilterBank<T>& bank, int axis = -1);

}  // namespace shoal::linop
