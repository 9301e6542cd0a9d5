// SPDX-License-Identifier: Apache-2.0
// From options to an opened model and its plan: what can be wrong before anything is started.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "shoal/infer/model_config.h"
#include "shoal/infer/model_file.h"
#include "shoal/infer/plan.h"

namespace shoal::app {

struct ModelSetup {
  infer::ModelFile file;
  infer::ModelConfig config;
  infer::Plan plan;
};

/// The context length to use: what was asked for, which may not exceed what the model knows; by default
/// the smaller of 4096 and that.
std::int64_t context_for(const infer::ModelConfig& config, std::int64_t asked, bool explicitly);

/// Opens the model and plans it for `pes` PEs with `threads` compute threads each. Throws Error.
ModelSetup set_up(const RunOptions& options, int pes, int threads);

/// Throws Error naming `where` and the byte when `text` is not UTF-8.
void check_utf8(const std::string& text, const std::string& where);

/// The text of -p or --file. Throws Error (io, invalid UTF-8 is named with its byte offset).
std::string read_prompt(const RunOptions& options);

}  // namespace shoal::app
