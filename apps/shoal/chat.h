// SPDX-License-Identifier: Apache-2.0
// A conversation on the terminal.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "options.h"
#include "shoal/infer/chat_template.h"
#include "shoal/infer/engine.h"
#include "shoal/infer/tokenizer.h"

namespace shoal::app {

/// Feeds tokens and generates the answer; true when the model ended it itself.
using Answer =
    std::function<bool(std::span<const infer::Token>, const std::function<void(const std::string&)>& emit)>;

/// Reads lines from standard input until its end, /exit, or Ctrl-C at the prompt; each is a message, and
/// the answer streams to standard output. /reset begins anew.
void converse(infer::Engine& engine, const infer::Tokenizer& tokenizer, const infer::ChatTemplate& chat,
              const RunOptions& options, const Answer& answer);

}  // namespace shoal::app
