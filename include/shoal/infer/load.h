// SPDX-License-Identifier: Apache-2.0
// Loading a model on all PEs of a job at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "shoal/base/thread_team.h"
#include "shoal/comm/communicator.h"
#include "shoal/infer/model_file.h"
#include "shoal/infer/plan.h"
#include "shoal/infer/weights.h"

namespace shoal::infer {

/// Symmetric memory that load_shard needs on each PE (JobOptions::symmetric_bytes).
std::size_t load_symmetric_bytes(int pes);

/// Collective: throws the same error on all PEs when their model files differ (hash of the headers), or
/// when they run versions of Shoal that do not understand each other.
void check_same_model(comm::Communicator& communicator, const ModelFile& file);

/// Collective: every PE reads its shard. `show` is called on PE 0 with the bytes of all PEs together,
/// again and again until all have ended. A failure on any PE is thrown on all, naming it.
Weights load_shard(comm::Communicator& communicator, const ModelFile& file, const Plan& plan,
                   ThreadTeam& team, const LoadProgress& show);

}  // namespace shoal::infer
