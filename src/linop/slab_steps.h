// SPDX-License-Identifier: Apache-2.0
// Transforms of slabs joined with their redistribution: what is transformed leaves the caches once, for where
// it belongs. For ranks of one host.
#pragma once

#include "linop/fft_steps.h"
#include "linop/tile_pipe.h"

namespace shoal::linop {

/// Arrays [n0, n1, rest] split along the first axis on one side and along the second on the other.
struct SlabShape {
  std::vector<Index> rows;     // parts of n0
  std::vector<Index> columns;  // parts of n1
  Index rest = 1;              // elements of a spectrum behind the second axis
  array::Rank me = 0;
};

/// The largest piece that the two steps below pass at a time, in elements.
template <class R>
Index slab_slot(const SlabShape& slab);

/// [own rows, n1, rest] -> [n0, own columns, rest]: each plane is transformed over `axes` of its own (0 is
/// the second axis of the array) and distributed. `plane` is its shape before, T its element type.
template <class T>
std::unique_ptr<FftStep<array::Real<T>>> planes_step(
    const std::shared_ptr<TilePipe<std::complex<array::Real<T>>>>& pipe, const SlabShape& slab,
    const Shape& plane, const std::vector<int>& axes, int halved);

/// [n0, own columns, rest] -> [own rows, n1, rest]: the first axis is transformed, in tiles of columns that
/// are distributed.
template <class R>
std::unique_ptr<FftStep<R>> columns_step(const std::shared_ptr<TilePipe<std::complex<R>>>& pipe,
                                         const SlabShape& slab);

}  // namespace shoal::linop
