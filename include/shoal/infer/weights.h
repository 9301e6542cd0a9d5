// SPDX-License-Identifier: Apache-2.0
// The tensors that one PE holds, in one block of memory of exactly their size. Nothing is mapped and
// nothing is held twice: each tensor is read in pieces to where the kernels use it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/base/thread_team.h"
#include "shoal/infer/anonymous_memory.h"
#include "shoal/infer/model_config.h"
#include "shoal/infer/model_file.h"
#include "shoal/infer/plan.h"
#include "shoal/tensor/kernels.h"

namespace shoal::infer {

/// One transformer block. A projection is (output features, input features).
struct LayerWeights {
  std::span<const float> attention_norm;  // (width)
  tensor::Matrix q;                       // (query_width, width)
  tensor::Matrix k, v;                    // (kv_width, width)
  tensor::Matrix o;                       // (width, query_width)
  std::span<const float> ffn_norm;        // (width)
  tensor::Matrix gate, up;                // (ffn_width, width)
  tensor::Matrix down;                    // (width, ffn_width)
};

struct Weights {
  std::vector<LayerWeights> layers;     // this PE's, layers[0] is the model's layer PePlan::layer_begin
  tensor::Matrix embedding;             // (vocabulary, width); no rows on PEs without it
  std::span<const float> output_norm;   // (width); empty on PEs without the output
  tensor::Matrix output;                // (vocabulary, width); the embedding's memory when tied
  std::span<const float> rope_factors;  // (rope_dimensions / 2), divide the frequencies; empty: all 1
  AnonymousMemory memory;               // what all of these point into
};

/// Names of the tensors that a PE holds, in the order of its memory, each once.
std::vector<std::string> shard_tensors(const ModelFile& file, const ModelConfig& config, const PePlan& pe);

/// Bytes that a tensor takes in memory: as in the file, rounded up to 64.
std::uint64_t held_bytes(const TensorInfo& tensor);

/// Called with the bytes read so far and in total, always from the thread that called load_weights.
using LoadProgress = std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)>;

/// Reads what `plan` gives to PE `pe`, with all members of `team`. Throws Error (io, out_of_memory);
/// a member's failure stops the others.
Weights load_weights(const ModelFile& file, const ModelConfig& config, const Plan& plan, int pe,
                     ThreadTeam& team, const LoadProgress& progress = {});

}  // namespace shoal::infer
