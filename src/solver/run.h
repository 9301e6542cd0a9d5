// SPDX-License-Identifier: Apache-2.0
// What the functions around a Solver do.
#pragma once

#include <memory>
#include <utility>

#include "shoal/solver/solver.h"

// A line for each element type.
#define SHOAL_SOLVER_ELEMENTS(apply) \
  apply(float) apply(double) apply(std::complex<float>) apply(std::complex<double>)

namespace shoal::solver {

/// To the end. `x0` is null where x begins at zero.
template <class T>
Result<T> run(std::unique_ptr<Solver<T>> solver, const DistributedArray<T>& b,
              const DistributedArray<T>* x0) {
  if (x0 == nullptr)
    solver->setup(b);
  else
    solver->setup(b, *x0);
  while (solver->step()) {
  }
  return std::move(*solver).finish();
}

}  // namespace shoal::solver
