// SPDX-License-Identifier: Apache-2.0
// How often a thread has called operator new.
#pragma once

namespace shoal::linop::checks {

/// Of the calling thread, since it began.
int allocations();

}  // namespace shoal::linop::checks
