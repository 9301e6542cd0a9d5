// SPDX-License-Identifier: Apache-2.0
// What iterative methods report: after each iteration to a callback, and at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "shoal/array/distributed_array.h"

namespace shoal::solver {

using array::DistributedArray;
using array::Layout;
using array::Rank;
using array::Real;

/// Why a method has stopped; the same on every rank.
enum class Stop : std::uint8_t {
  none,             // it has not
  converged,        // its rule is fulfilled (each method's header says which)
  iteration_limit,  // max_iterations are done
  non_finite,       // a norm is infinite or not a number
  breakdown,        // the method divides by zero here, or the operator is not what the method needs
  diverging,        // what should fall has grown, where the caller asked to stop then
  callback,         // the callback said so
};

/// "converged", "iteration limit", ...
const char* to_string(Stop stop);

template <class T>
struct Result {
  DistributedArray<T> x;
  Stop stop = Stop::none;
  int iterations = 0;
  /// |b - A x|, as the method knows it: by recurrence.
  double residual_norm = 0;
  /// |A^H (b - A x) - damping^2 x| where the method knows it, else NaN.
  double gradient_norm = std::numeric_limits<double>::quiet_NaN();
  /// What the method makes small, at the start and after each iteration: iterations + 1 numbers.
  std::vector<double> history{};
  /// The first rank with an element that is not finite, if that was why it stopped; -1: none (sums
  /// overflowed).
  Rank non_finite_rank = -1;
};

/// What a callback sees after each iteration.
template <class T>
struct Iteration {
  int number;  // 1 after the first
  double residual_norm;
  double cost;  // the last of the history
  const DistributedArray<T>& x;
};

enum class Next : std::uint8_t { go_on, stop };

/// Called on every rank, and must answer the same on all. It may communicate.
template <class T>
using Callback = std::function<Next(const Iteration<T>&)>;

}  // namespace shoal::solver
