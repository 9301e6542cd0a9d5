// SPDX-License-Identifier: Apache-2.0
// The sizes of the local operators of all ranks, gathered once when an operator is made of them.
#pragma once

#include <vector>

#include "shoal/linop/linear_operator.h"
#include "shoal/linop/local_operator.h"

namespace shoal::linop {

struct BlockSizes {
  std::vector<Index> rows, cols;  // sums of each rank's blocks
  Index width = 0;                // cols of every block, where they were asked to be equal
};

/// Collective.
template <class T>
BlockSizes gather_sizes(const comm::Communicator& communicator,
                        const std::vector<AnyLocalOperator<T>>& blocks);
/// The same where all blocks must have equal cols. `what` names them in the error, which all ranks throw
/// alike.
template <class T>
BlockSizes gather_equal_widths(const comm::Communicator& communicator,
                               const std::vector<AnyLocalOperator<T>>& blocks, const char* what);

}  // namespace shoal::linop
