// SPDX-License-Identifier: Apache-2.0
// Operators made of blocks: of local operators, one or more a rank or none, and of distributed ones.
//
// Sizes follow from all ranks' blocks, which are gathered once, at construction; blocks that do not fit are
// an error on every rank that names the rank and both sizes. Domains and ranges are one-axis arrays;
// reshaped() gives them the shape of the data.
#pragma once

#include <vector>

#include "shoal/linop/linear_operator.h"
#include "shoal/linop/local_operator.h"

namespace shoal::linop {

/// One local operator of equal size on every rank, applied by each rank to its replica.
template <class T>
AnyOperator<T> on_replicas(const comm::Communicator& communicator, const AnyLocalOperator<T>& op);

/// y_i = A_i x_i. Rank r holds the parts of x and y that belong to its own blocks. No communication.
template <class T>
AnyOperator<T> block_diagonal(const comm::Communicator& communicator,
                              std::vector<AnyLocalOperator<T>> blocks);

/// y_i = A_i x with x replicated and y split; all blocks are equally wide. The adjoint sums over the rank's
/// own blocks and then over the ranks, by one all_reduce.
template <class T>
AnyOperator<T> vertical_stack(const comm::Communicator& communicator,
                              std::vector<AnyLocalOperator<T>> blocks);

/// y = sum of A_i x_i with x split and y replicated, by one all_reduce; all blocks are equally high. The
/// adjoint needs no communication.
template <class T>
AnyOperator<T> horizontal_stack(const comm::Communicator& communicator,
                                std::vector<AnyLocalOperator<T>> blocks);

// Of distributed operators. Where a side has several members its layout is Layout::stack of theirs.

/// y_i = A_i x_i, from a stack to a stack.
template <class D, class R = D>
AnyOperator<D, R> stacked_block_diagonal(std::vector<AnyOperator<D, R>> blocks);
/// y_i = A_i x, to a stack; all domains are equal.
template <class D, class R = D>
AnyOperator<D, R> stacked_vertical(std::vector<AnyOperator<D, R>> blocks);
/// y = sum of A_i x_i, from a stack; all ranges are equal.
template <class D, class R = D>
AnyOperator<D, R> stacked_horizontal(std::vector<AnyOperator<D, R>> blocks);

}  // namespace shoal::linop
