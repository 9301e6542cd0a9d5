// SPDX-License-Identifier: Apache-2.0
// What a benchmark prints: one JSON object a line and case. Programs of Shoal and of the C++ rivals share it.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace shoal::bench {

/// Of the slowest rank's times.
struct Quartiles {
  double low_ms = 0, median_ms = 0, high_ms = 0;
  std::size_t repeats = 0;
};
Quartiles quartiles(std::vector<double> ms);

struct Line {
  std::string name{};
  int ranks = 1;
  std::string transport{}, library{};
  Quartiles time{};
  /// What one repeat reads and writes, and computes, all ranks together; 0: not said.
  double bytes = 0, flops = 0;
  /// Further numbers, by name.
  std::vector<std::pair<std::string, double>> more{};
};
/// Prints it on the standard output; for one rank to call.
void print(const Line& line);

/// Whether a case has been timed often enough to end.
bool enough(const std::vector<double>& ms, double seconds);

/// The options that each benchmark has.
struct Choice {
  double seconds = 0.4;              // for a case
  std::vector<std::string> cases{};  // parts of names; none: all
  bool wanted(const std::string& name) const;
};

}  // namespace shoal::bench
