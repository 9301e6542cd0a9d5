// SPDX-License-Identifier: Apache-2.0
// Ctrl-C. The first ends the answer that is being generated, the second the program. In a job of
// processes the supervisor (launch.h) gets the terminal's signal and passes it on as SIGUSR1.
#pragma once

namespace shoal::app {

/// Lets SIGINT (or, within a supervised job, SIGUSR1) be seen by interrupted(); a second SIGINT before
/// clear_interrupt() ends the process at once.
void catch_interrupts();
bool interrupted();
void clear_interrupt();

}  // namespace shoal::app
