// SPDX-License-Identifier: Apache-2.0
// A conversation on the terminal.
#pragma once

#include "generation.h"
#include "options.h"
#include "shoal/infer/chat_template.h"

namespace shoal::app {

/// Reads lines from standard input until its end, /exit, or Ctrl-C at the prompt; each is a message, and
/// the answer streams to standard output. /reset begins anew.
void converse(Generation generation, const infer::ChatTemplate& chat, const RunOptions& options);

}  // namespace shoal::app
