// SPDX-License-Identifier: Apache-2.0
// A model that is split over the PEs of a communicator, at work.
//
// PE 0 drives: it owns the text so far, feeds tokens, and gets the next one. The others serve: they wait
// for a chunk of hidden states, run their layers on it and put it into the next PE's segment. What
// travels for one token: its hidden state from stage to stage, and from the last PE back to PE 0 the
// sampled token (or, when PE 0 holds the output, the hidden state). Nothing else: no acknowledgements,
// since a token that has come round proves that everything before it was taken. Chunks of a prompt
// follow each other without waiting, two in flight between neighbours, and are acknowledged.
//
//   Engine engine(world, plan, weights, options);      // collective
//   if (world.rank() == 0) {
//     Token next = engine.feed(prompt);
//     while (...) next = engine.feed({&next, 1});
//     engine.stop();
//   } else {
//     engine.serve();                                   // until stop()
//   }
//   auto reports = engine.reports();                    // collective
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shoal/base/thread_team.h"
#include "shoal/comm/communicator.h"
#include "shoal/infer/plan.h"
#include "shoal/infer/sampler.h"
#include "shoal/infer/weights.h"
#include "shoal/tensor/kernels.h"

namespace shoal::infer {

/// What one PE did, for the table at the end of a run.
struct PeReport {
  std::int32_t pe = 0;
  std::int32_t layer_begin = 0;
  std::int32_t layer_end = 0;
  std::int32_t has_embedding = 0;
  std::int32_t has_output = 0;
  std::int32_t idle = 0;
  std::uint64_t memory_bytes = 0;  // weights, KV cache, scratch and segments
  double compute_s = 0;
  double wait_s = 0;  // for the neighbour, while there was a text to work on
  std::uint64_t sent_bytes = 0;
  std::uint64_t messages = 0;
  std::string host;  // filled in by reports()
};

class Engine {
 public:
  /// Symmetric memory that an engine needs on each PE (JobOptions::symmetric_bytes).
  static std::size_t symmetric_bytes(const Plan& plan);

  /// Collective. Borrows `weights`, `team` and `kernels`. plan.pes has one entry for each rank of
  /// `communicator`.
  Engine(const comm::Communicator& communicator, const Plan& plan, const Weights& weights, ThreadTeam& team,
         const tensor::KernelSet& kernels, const SamplerOptions& sampling);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// PE 0: feeds tokens at the end of the text (at least one) and returns the token sampled after the
  /// last of them. `stop` is asked between chunks; when it is true the rest is not fed, and no_token
  /// returned. Throws Error: invalid_argument (none, or an id outside the vocabulary) and out_of_memory (no
  /// room in the context), when nothing has been fed; numeric for non-finite logits; timeout.
  Token feed(std::span<const Token> tokens, const std::function<bool()>& stop = {});

  /// Number of tokens fed so far.
  std::int64_t position() const;
  /// Positions that there are at most.
  std::int64_t context() const;

  /// PE 0: forgets the text from position `length` on.
  void truncate(std::int64_t length);

  /// PE 0: lets the others return from serve().
  void stop();

  /// The other PEs: work until stop().
  void serve();

  /// Collective, after stop(): one report a PE on PE 0, empty elsewhere.
  std::vector<PeReport> reports();

  /// On the PE with the output: the logits (vocabulary) that the last token was sampled from, after the
  /// repetition penalty; elsewhere empty. For tests.
  std::span<const float> last_logits() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace shoal::infer
