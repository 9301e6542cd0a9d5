// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM's own collectives and puts as a baseline.
#pragma once

#include <memory>

#include "shoal/comm/library_calls.h"

namespace shoal::comm::shmem {

/// Collective; takes its symmetric buffers and work arrays from `world`.
std::unique_ptr<LibraryCalls> make_library_calls(Communicator& world, std::size_t operand_bytes);

}  // namespace shoal::comm::shmem
