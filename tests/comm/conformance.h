// SPDX-License-Identifier: Apache-2.0
// The one list of cases that every transport must pass with any number of ranks. Expected values are
// closed forms of (rank, size), so each rank checks alone.
#pragma once

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
void add_pattern_cases(std::vector<Case>& cases);  // conformance_patterns.cpp

/// Number of values compared so far on this thread: a case that compares nothing is no test.
std::int64_t& comparisons();

}  // namespace shoal::comm::conformance
