// SPDX-License-Identifier: Apache-2.0
// Which PE holds what. A plan is computed from the headers of a model file alone, for machines that may
// not be there, and is the only thing that the loader and the engine look at.
//
// The split is a pipeline: PEs in order hold contiguous runs of layers. The partition minimises the
// largest total memory of a PE relative to its share (exactly, by dynamic programming), and among the
// partitions that reach it takes the most even one; what remains goes to the earlier PEs.
//
// Rejected: layers by cumulative rounding of shares alone, because it does not see that embedding and
// output matrix may weigh as much as several layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/infer/kv_cache.h"
#include "shoal/infer/model_config.h"
#include "shoal/infer/model_file.h"

namespace shoal::infer {

struct PlanOptions {
  int pes = 1;
  std::int64_t context = 0;  // positions of the KV cache; 0: as many as the model was trained for
  KvFormat kv_format = KvFormat::f16;
  std::int64_t chunk_tokens = 64;  // tokens of a prompt that travel through the pipeline together
  int threads = 1;                 // per PE; each needs scratch for attention scores

  /// Bytes that a PE may use: empty (no limit), one value for all, or one per PE. A PE with 0 gets no
  /// layers; PE 0 holds the embedding and needs some.
  std::vector<std::uint64_t> memory = {};

  /// Relative shares, one per PE, any unit, 0 for no layers; empty: in proportion to `memory`.
  std::vector<double> shares = {};
};

struct PePlan {
  int pe = 0;
  std::int64_t layer_begin = 0;
  std::int64_t layer_end = 0;
  bool has_embedding = false;  // the token embedding table
  bool has_output = false;     // output norm, output matrix, sampler

  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t scratch_bytes = 0;  // activations, attention scores, logits, sampler
  std::uint64_t segment_bytes = 0;  // communication, in the symmetric heap

  std::int64_t layers() const { return layer_end - layer_begin; }
  bool idle() const { return layers() == 0 && !has_embedding && !has_output; }
  std::uint64_t total_bytes() const { return weight_bytes + kv_bytes + scratch_bytes + segment_bytes; }
};

struct Plan {
  std::string model;    // path of the (first) file
  ModelConfig config;   // of the model
  PlanOptions options;  // with `context` filled in
  std::vector<PePlan> pes;
  std::vector<int> pipeline;  // the PEs that a hidden state visits, in order: PE 0, then those with layers
  int output_pe = 0;          // computes logits; when it is 0 the last of `pipeline` sends its result there
  std::vector<std::string> notes;  // for people: where the output is and why, who is idle
};

/// Throws Error: invalid_argument (options that make no sense), out_of_memory (it does not fit
/// `memory`; the message says by how much, and on how many PEs it would fit).
Plan make_plan(const ModelFile& file, const ModelConfig& config, const PlanOptions& options);

/// Bytes of the segment that a PE holds for a neighbour in the pipeline: two halves, each a 64-byte header,
/// the ids of a chunk of tokens, and their hidden states (chunk_tokens, width) of float.
std::uint64_t segment_bytes(std::int64_t chunk_tokens, std::int64_t width);

/// A table for people, a line per PE, ending in a newline.
std::string format_plan(const Plan& plan);

/// The same as a JSON object; sizes in bytes, layer ranges half-open.
std::string format_plan_json(const Plan& plan);

}  // namespace shoal::infer
