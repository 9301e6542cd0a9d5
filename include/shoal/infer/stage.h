// SPDX-License-Identifier: Apache-2.0
// The forward pass of a run of layers: what one PE of the pipeline computes.
//
// Goals: it reads like the paper (Touvron et al. 2023: pre-norm blocks with RMSNorm, rotary positions,
// grouped-query attention, SwiGLU); no allocation after construction; the same bits for any split of
// layers over stages, of tokens over chunks, and of work over threads.
//
// How the bits stay the same: every number is computed by one member in an order that depends on its
// position alone. Sums over columns or positions are never split between members, normalisation and
// preparation of a row are done by one member, and a token reads keys and values from the cache only,
// also those of its own chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "shoal/base/thread_team.h"
#include "shoal/infer/kv_cache.h"
#include "shoal/infer/model_config.h"
#include "shoal/infer/tokenizer.h"
#include "shoal/infer/weights.h"
#include "shoal/tensor/kernels.h"

namespace shoal::infer {

/// Upper bound, for every kernel set, of the scratch memory of a Stage with `layers` layers and with
/// or without the output.
std::uint64_t stage_scratch_bytes(const ModelConfig& config, std::int64_t layers, bool has_output,
                                  std::int64_t max_chunk_tokens, std::int64_t positions, int threads);

class Stage {
 public:
  /// Borrows everything for its lifetime; `kv` has a layer for each of weights.layers. Chunks have at
  /// most `max_chunk_tokens` tokens.
  Stage(const ModelConfig& config, const Weights& weights, KvCache& kv, const tensor::KernelSet& kernels,
        ThreadTeam& team, std::int64_t max_chunk_tokens);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  std::int64_t max_chunk_tokens() const;
  std::uint64_t scratch_bytes() const;

  /// hidden (tokens, width) = rows of the embedding table; needs weights.embedding. Throws Error
  /// (invalid_argument) for an id outside the vocabulary.
  void embed(std::span<const Token> tokens, std::span<float> hidden) const;

  /// Runs this stage's layers in place on hidden (tokens, width), the states of the tokens at
  /// `position`, `position` + 1, ..., and appends their keys and values to the cache. `position` must be
  /// the cache's length. Throws Error: invalid_argument (wrong position or size), out_of_memory (the
  /// context is full); nothing has changed then.
  void layers(std::span<float> hidden, std::int64_t position);

  /// logits (vocabulary) of one token from its hidden state (width) after the last layer; needs
  /// weights.output.
  void logits(std::span<const float> hidden, std::span<float> logits);

 private:
  class Forward;
  std::unique_ptr<Forward> forward_;
};

}  // namespace shoal::infer
