// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process: needs no library, runs everywhere, and under the sanitizers.
#pragma once

#include <memory>

#include "shoal/comm/transport.h"

namespace shoal::comm::threads {

/// What the ranks of one job share.
class Job;

std::shared_ptr<Job> make_job(int ranks);

/// The end of `rank`; to be called on that rank's own thread, by all ranks (it waits for them).
std::unique_ptr<Transport> make_transport(std::shared_ptr<Job> job, Rank rank);

/// Makes every rank's next call throw `aborted`.
void stop(Job& job);

}  // namespace shoal::comm::threads
