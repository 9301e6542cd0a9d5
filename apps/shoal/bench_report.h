// SPDX-License-Identifier: Apache-2.0
// What `shoal bench comm` prints: a table of at most 100 columns, and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench_measure.h"

namespace shoal::app {

/// Where and how it was measured.
struct BenchEnvironment {
  std::string transport;
  std::string library;  // with its version
  int ranks = 1;
  std::vector<std::string> hosts;      // their names, each once
  int cores = 1;                       // of rank 0's host
  int local_ranks = 1;                 // there
  std::vector<std::string> baselines;  // names of the library's interfaces, in the table's order
};

std::string format_bench_head(const BenchEnvironment& environment, const Probe& probe);
std::string format_bench_row(const BenchEnvironment& environment, const CaseResult& result);
std::string format_bench_end(const BenchEnvironment& environment, const std::vector<CaseResult>& results,
                             const std::optional<FrontResult>& front);
std::string format_bench_json(const BenchEnvironment& environment, const std::vector<CaseResult>& results,
                              const std::optional<FrontResult>& front);

}  // namespace shoal::app
