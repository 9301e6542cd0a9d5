// SPDX-License-Identifier: Apache-2.0
#include "interrupt.h"

#include <unistd.h>
#include <csignal>

namespace shoal::app {
namespace {

// What a signal handler may touch has to be global.
volatile std::sig_atomic_t interrupts = 0;

void on_interrupt(int signal) {
  interrupts = interrupts + 1;
  if (interrupts > 1 && signal == SIGINT) _exit(128 + SIGINT);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a read of the terminal returns
  sigemptyset(&action.sa_mask);
  sigaction(SIGUSR1, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return interrupts > 0; }
void clear_interrupt() { interrupts = 0; }

}  // namespace shoal::app
