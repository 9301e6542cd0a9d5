// SPDX-License-Identifier: Apache-2.0
// The hyper-parameters of a model, read from its metadata and validated against its tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/infer/model_file.h"

namespace shoal::infer {

enum class RopeScaling { none, linear, yarn };

struct ModelConfig {
  std::string architecture;          // "llama"
  std::int64_t layers = 0;           // block_count
  std::int64_t width = 0;            // embedding_length
  std::int64_t ffn_width = 0;        // feed_forward_length
  std::int64_t heads = 0;            // query heads
  std::int64_t kv_heads = 0;         // key/value heads, divides `heads`
  std::int64_t head_width = 0;       // attention.key_length, or width / heads
  std::int64_t rope_dimensions = 0;  // rotated elements of a head, even
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;  // positions the model was trained for
  float norm_epsilon = 0;
  float rope_base = 10000.0f;
  RopeScaling rope_scaling = RopeScaling::none;
  float rope_scale = 1.0f;                 // linear: positions are divided by it
  std::int64_t rope_original_context = 0;  // yarn
  bool tied_output = false;                // no output.weight: token_embd.weight is used

  std::int64_t kv_width() const { return kv_heads * head_width; }
  std::int64_t query_width() const { return heads * head_width; }
};

/// Reads and checks the configuration, and that every tensor the architecture needs is there with the
/// right shape. Throws Error naming the file and the key or tensor; an architecture that is not
/// supported is named together with those that are.
ModelConfig read_config(const ModelFile& file);

}  // namespace shoal::infer
