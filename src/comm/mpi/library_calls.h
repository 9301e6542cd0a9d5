// SPDX-License-Identifier: Apache-2.0
// MPI's own calls as a baseline; also for other transports of a library that brings MPI along.
#pragma once

#include <memory>

#include "shoal/comm/library_calls.h"

namespace shoal::comm::mpi {

/// Null when MPI is not initialised in this process.
std::unique_ptr<LibraryCalls> make_library_calls();

}  // namespace shoal::comm::mpi
