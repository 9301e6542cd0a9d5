// SPDX-License-Identifier: Apache-2.0
// The one list of cases that every transport must pass with any number of ranks. Expected values are
// closed forms of (rank, size), so each rank checks alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shoal/comm/communicator.h"

namespace shoal::comm::conformance {

struct Case {
  std::string name;
  std::function<void(Communicator&)> run;  // throws when something is wrong
};

std::vector<Case> all_cases();
// Each in the file of its name, conformance_<what>.cpp.
void add_pattern_cases(std::vector<Case>& cases);
void add_form_cases(std::vector<Case>& cases);
void add_reduction_cases(std::vector<Case>& cases);
void add_strided_cases(std::vector<Case>& cases);
void add_segment_cases(std::vector<Case>& cases);

/// What one rank has run.
struct Tally {
  int cases = 0;
  std::int64_t comparisons = 0;
};
/// Runs the cases called `only` (all when it is empty), `between` after each. Throws with the case's name.
Tally run_cases(Communicator& world, const std::string& only, const std::function<void()>& between);

/// Number of values compared so far on this thread: a case that compares nothing is no test.
std::int64_t& comparisons();

}  // namespace shoal::comm::conformance
