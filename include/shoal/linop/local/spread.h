// SPDX-License-Identifier: Apache-2.0
// Spreading along curves, and Kirchhoff modelling with it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shoal/array/layout.h"

namespace shoal::linop::local {

using array::Index;

/// Every model point adds to one time of every trace: data[trace, t] += (1 - f) m, data[trace, t + 1] += f m,
/// where t + f = times[point, trace] in samples. Points outside [0, samples - 1] and NaN add nothing.
/// (pylops: Spread, with both of its tables in one.)
template <class T>
class Spread {
 public:
  using value_type = T;
  /// `times` is [points, traces].
  Spread(Index points, Index traces, Index samples, std::vector<float> times);
  Index rows() const { return traces_ * samples_; }
  Index cols() const { return points_; }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Index points_, traces_, samples_;
  std::shared_ptr<const std::vector<float>> times_;
};

/// A place in a section: metres across and down.
struct Position {
  double x = 0, z = 0;
};

/// Times, in samples of `dt` seconds, from `source` to each point of the grid and on to each receiver, at one
/// velocity (m/s): [nx, nz, receivers], as Spread takes it. The grid begins at (0, 0), `step` metres apart.
std::vector<float> travel_times(Index nx, Index nz, double step, Position source,
                                std::span<const Position> receivers, double velocity, double dt);

}  // namespace shoal::linop::local
