// SPDX-License-Identifier: Apache-2.0
// The eigenvalue of largest magnitude, by repeated application.
//
// With |v| = 1: lambda = v^H A v, and v becomes A v / |A v|. Stops as converged where lambda changed by at
// most tolerance |lambda| and |A v - lambda v|^2 <= tolerance |lambda|^2; the second keeps two eigenvalues of
// equal magnitude (1 and -1) from being taken for one between them. Breakdown where A v = 0.
// Cost of an iteration: A once, 1 reduction, 5 vectors read or written (complex: 7).
#pragma once

#include <cstdint>
#include <type_traits>

#include "shoal/solver/solver.h"

namespace shoal::solver {

struct PowerOptions {
  int max_iterations = 100;
  double tolerance = 1e-5;
  /// Of the first vector, which depends on it alone and not on the number of ranks.
  std::uint64_t seed = 1;
};

template <class T>
struct Eigenpair {
  T value;  // of real operators real: a pair of complex eigenvalues does not converge
  DistributedArray<T> vector;
  Stop stop = Stop::none;
  int iterations = 0;
};

/// Collective. The operator's domain is its range.
template <class T>
Eigenpair<T> power_iteration(const AnyOperator<T>& a, const PowerOptions& options = {});

/// The largest eigenvalue of A^H A, the square of A's norm, likewise.
template <class T>
double largest_squared_singular_value(const AnyOperator<T>& a, const PowerOptions& options = {});

}  // namespace shoal::solver
