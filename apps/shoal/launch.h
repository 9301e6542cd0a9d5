// SPDX-License-Identifier: Apache-2.0
// Starting a job by the launcher of its transport, and staying beside it: signals of the terminal are
// passed on, standard input goes to PE 0, and whatever ends this process ends the job.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace shoal::app {

/// Whether standard error and output end in a terminal: of this process, or of the supervisor that
/// launch_job left beside the job.
bool stderr_is_terminal();
bool stdout_is_terminal();

/// Starts `options.pes` processes `shoal run ARGUMENTS` with `transport` (mpi or shmem) and returns the
/// job's exit code. Throws Error when there is no launcher.
int launch_job(const RunOptions& options, const std::string& transport,
               const std::vector<std::string>& arguments);

}  // namespace shoal::app
