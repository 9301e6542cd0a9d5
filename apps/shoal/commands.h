// SPDX-License-Identifier: Apache-2.0
// The commands of the program; each returns the process's exit code and throws Error.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace shoal::app {

/// `arguments` are those of the command line after "run", for starting the same on each PE.
int run_command(const RunOptions& options, const std::vector<std::string>& arguments);
int plan_command(const PlanCommand& options);
int info_command(const std::string& model, bool json);
int doctor_command(bool json);
/// `arguments` are those of the command line, for starting the same on each PE.
int bench_comm_command(const BenchOptions& options, const std::vector<std::string>& arguments);

}  // namespace shoal::app
