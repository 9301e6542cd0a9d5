// SPDX-License-Identifier: Apache-2.0
// Starting a job by the launcher of its transport, and staying beside it: signals of the terminal are
// passed on, standard input goes to PE 0, and whatever ends this process ends the job.
#pragma once

#include <string>
#include <vector>

#include "shoal/comm/job.h"

namespace shoal::app {

/// Whether standard error and output end in a terminal: of this process, or of the supervisor that
/// launch_job left beside the job.
bool stderr_is_terminal();
bool stdout_is_terminal();

/// What the command line says of the job.
struct JobRequest {
  int pes = 1;
  bool has_pes = false;
  std::string transport = "auto";
  std::string hostfile;
};

/// What runs where, known before anything is started.
struct JobPlace {
  comm::LaunchEnvironment environment;
  std::string transport;
  int pes = 1;
  bool start = false;  // this process is to start the job
};

/// Throws Error (invalid_argument) where the request does not fit the launcher that started this process.
JobPlace place_job(const JobRequest& request);

struct Launch {
  std::vector<std::string> command;  // of each PE: "run" and so on, with the options of JobRequest or without
  std::string transport;             // mpi or shmem
  int pes = 1;
  std::string hostfile;
  bool wants_input = false;  // standard input is for PE 0
  bool yields = true;        // the library's own waits give up the core; false: as it sees fit
};

/// Starts `launch.pes` processes `shoal COMMAND` and returns the job's exit code. Throws Error when there is
/// no launcher.
int launch_job(const Launch& launch);

}  // namespace shoal::app
