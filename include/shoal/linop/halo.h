// SPDX-License-Identifier: Apache-2.0
// Each rank's block with copies of its neighbours' elements around it, corners included, so that a local
// operator that looks beyond its block can be applied block by block: halo.crop * block_diagonal(...) *
// halo.extend.
#pragma once

#include <vector>

#include "shoal/array/ghost_cells.h"
#include "shoal/linop/linear_operator.h"

namespace shoal::linop {

using array::Boundary;

/// `extend` maps an array to its extended blocks, which overlap; its adjoint adds what the copies hold to the
/// elements that they are copies of. `crop` maps extended blocks to their own parts: crop * extend is the
/// identity. The adjoint of crop surrounds with zeros. The range of `extend` is a layout of blocks whose
/// extents are the extended ones.
template <class T>
struct Halo {
  AnyOperator<T> extend;
  AnyOperator<T> crop;
};

/// `widths`: one for all sides of all axes, or one for each axis, or two for each axis (before and after).
/// `boundary` says what lies beyond the ends of the global array; with Boundary::none blocks are trimmed
/// there.
template <class T>
Halo<T> halo(const comm::Communicator& communicator, const Layout& layout, const std::vector<Index>& widths,
             Boundary boundary = Boundary::none);

}  // namespace shoal::linop
