// SPDX-License-Identifier: Apache-2.0
// What every example does around its own work: options, joining the job, lines from rank 0, and the verdict.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "shoal/comm/job.h"

namespace examples {

struct Arguments {
  int threads = 2;     // --ranks N: threads to run on, where no launcher has started processes
  std::string output;  // --output FILE: the picture
  std::string input;   // FILE, for the examples that read one
};
using Body = std::function<void(shoal::comm::Communicator&, const Arguments&)>;

/// Runs `body` on every rank of the job that mpirun, oshrun or srun has started, or else on threads. Returns
/// the program's exit code. The picture's default name is the program's with ".png". `file` is what the usage
/// calls the file that the example reads; empty: it reads none.
int start(int argc, char** argv, const Body& body, const std::string& file = "");

/// A line on standard output, from rank 0.
template <class... Values>
void say(const shoal::comm::Communicator& world, fmt::format_string<Values...> format, Values&&... values) {
  if (world.rank() != 0) return;
  fmt::print("{}\n", fmt::format(format, std::forward<Values>(values)...));
  std::fflush(stdout);  // before what the error output gets
}

/// Ends the example as failed where `condition`, the same on every rank, does not hold.
void expect(bool condition, const std::string& what);

}  // namespace examples
