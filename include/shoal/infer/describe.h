// SPDX-License-Identifier: Apache-2.0
// What a model file holds, for people (`shoal info MODEL`) and for programs. Works for every readable
// file, also for one whose architecture cannot be run: the description then says why.
#pragma once

#include <string>

#include "shoal/infer/model_file.h"

namespace shoal::infer {

/// Several lines of text: a summary, the metadata (long arrays and texts shortened), the tensors.
std::string describe(const ModelFile& file);

/// The same as one JSON object with members name, architecture, files, size_bytes, parameters,
/// formats, model (null when it cannot be run; then `unsupported` says why), tokenizer, metadata, tensors.
std::string describe_json(const ModelFile& file);

}  // namespace shoal::infer
