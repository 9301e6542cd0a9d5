// SPDX-License-Identifier: Apache-2.0
// Which decorators a job has, from its options and the environment.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/decorators/checked.h"
#include "comm/decorators/faults.h"
#include "shoal/comm/job.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

struct Decorations {
  Checking check = Checking::off;
  std::string trace;  // file, "": none
  std::vector<Fault> faults;
};

/// Throws invalid_argument for a level or a fault that is not understood.
Decorations read_decorations(const JobOptions& options);

/// Traced(Faulty(Checked(transport))), each only where it is asked for. Tracing is outermost, so that
/// a fault's delay is seen; faults are outside the checks, so that their counts are the program's calls.
std::unique_ptr<Transport> decorate(std::unique_ptr<Transport> transport, const Decorations& decorations);

}  // namespace shoal::comm
