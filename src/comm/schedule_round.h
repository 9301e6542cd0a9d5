// SPDX-License-Identifier: Apache-2.0
// A round of a schedule that is under way.
#pragma once

#include <memory>

#include "comm/messenger.h"
#include "comm/schedule.h"

namespace shoal::comm {

class HostCollectives;

/// Starts the messages of `round` and its host step: by `host`, or where that is null by messages too.
/// `round` must live as long.
std::unique_ptr<Exchange> start_round(Messenger& messenger, HostCollectives* host, const Group& group,
                                      const Hosts& hosts, int tag, const Round& round);

}  // namespace shoal::comm
