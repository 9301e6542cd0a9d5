// SPDX-License-Identifier: Apache-2.0
// A sum over an array's elements before the ranks' parts are added up.
#pragma once

namespace shoal::solver {

/// A sum over this rank's elements: of what is split among ranks, and of what each rank holds whole. The sum
/// over all is that of `split` over the ranks, plus `replicated`, which is the same on each.
struct LocalSum {
  double split = 0, replicated = 0;

  LocalSum& operator+=(const LocalSum& other) {
    split += other.split;
    replicated += other.replicated;
    return *this;
  }
  friend LocalSum operator+(LocalSum a, const LocalSum& b) { return a += b; }
  friend LocalSum operator*(double factor, const LocalSum& a) {
    return {factor * a.split, factor * a.replicated};
  }
};

}  // namespace shoal::solver
