// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shoal/solver/cg.h"

namespace shoal::solver {

template <class T>
std::unique_ptr<Solver<T>> make_pipelined_cg(const AnyOperator<T>& a, const CgOptions<T>& options);

}  // namespace shoal::solver
