// SPDX-License-Identifier: Apache-2.0
// Half precision in reductions of several steps: float32 on the way, rounded once at the end.
#pragma once

#include <functional>

#include "comm/schedule.h"

namespace shoal::comm {

/// True where combining in steps would round at each of them.
bool needs_widening(const Operation& reduction);

/// Adds a reduction's rounds by build(the same in float32), between those that convert. `rank` is mine.
void widened(Schedule& schedule, Rank rank, const Operation& reduction,
             const std::function<void(const Operation&)>& build);

}  // namespace shoal::comm
