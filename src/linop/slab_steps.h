// SPDX-License-Identifier: Apache-2.0
// Transforms of slabs joined with their redistribution: what is transformed leaves the caches once, for where
// it belongs. For ranks of one host.
//
// An example: [4, 6, rest] on two ranks, forward. Rank 0 has planes 0 and 1, rank 1 planes 2 and 3; in
// between rank 0 gets columns 0 to 2, rank 1 columns 3 to 5.
//
//   rank 0                                             rank 1
//   transforms plane 0 in its cache                    transforms plane 2
//   stores columns 0-2 in row 0 of its own memory,     stores columns 0-2 in row 2 of rank 0's memory,
//     columns 3-5 in row 0 of rank 1's memory            columns 3-5 in row 2 of its own memory
//   plane 1 likewise: row 1                            plane 3 likewise: row 3
//   ---------------- meet: both have [4 rows, own 3 columns, rest] complete ----------------
//   for each tile of some of its columns: copies the   the same with columns 3-5
//     4 rows of it to the cache, transforms,
//     rows 0 and 1 are its own result; rows 2 and 3
//     go to a slot of the pipe, from which rank 1      takes in rows 2 and 3 of columns 0-2, as rank 0 takes
//     takes them                                         in rows 0 and 1 of columns 3-5
//
// So each element is loaded from memory twice and stored twice, by each direction of a transform whose ends
// are both slabs along the first axis, and every second one passes between caches besides. Backwards the same
// happens in reverse: tiles of rows are gathered by the pipe, and planes by loads from the peers' memory.
#pragma once

#include "linop/fft_steps.h"
#include "linop/slab_memory.h"
#include "linop/tile_pipe.h"

namespace shoal::linop {

/// Arrays [n0, n1, rest] split along the first axis on one side and along the second on the other.
struct SlabShape {
  std::vector<Index> rows;     // parts of n0
  std::vector<Index> columns;  // parts of n1
  Index rest = 1;              // elements of a spectrum behind the second axis
  array::Rank me = 0;
};

/// The largest piece that columns_step passes at a time, and of SlabMemory, in elements.
template <class R>
Index slab_slot(const SlabShape& slab);
Index largest_part(const SlabShape& slab);

template <class R>
using SharedSlab = std::shared_ptr<SlabMemory<std::complex<R>>>;

/// [own rows, n1, rest] -> the memory: each plane is transformed over `axes` of its own (0 is the second axis
/// of the array) and distributed. `plane` is its shape before, T its element type.
template <class T>
std::unique_ptr<FftStep<array::Real<T>>> planes_step(const SharedSlab<array::Real<T>>& memory,
                                                     const SlabShape& slab, const Shape& plane,
                                                     const std::vector<int>& axes, int halved);

/// The memory -> [own rows, n1, rest]: the first axis is transformed, in tiles of columns that are
/// distributed by the pipe.
template <class R>
std::unique_ptr<FftStep<R>> columns_step(const SharedSlab<R>& memory,
                                         const std::shared_ptr<TilePipe<std::complex<R>>>& pipe,
                                         const SlabShape& slab);

/// The memory -> [n0, own columns, rest]: the first axis is transformed.
template <class R>
std::unique_ptr<FftStep<R>> own_columns_step(const SharedSlab<R>& memory, const SlabShape& slab);

}  // namespace shoal::linop
