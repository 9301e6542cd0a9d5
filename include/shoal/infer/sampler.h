// SPDX-License-Identifier: Apache-2.0
// From logits to the next token.
//
// Order of operations: repetition penalty, then top_k on the logits, temperature, softmax, top_p, min_p, one
// draw. The random number depends on (seed, position) alone, so a generation can be taken up again at any
// position and continues as it would have; and it is the same on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/infer/tokenizer.h"

namespace shoal::infer {

/// Defaults are those that most programs of this kind use.
struct SamplerOptions {
  double temperature = 0.8;         // 0: always the largest logit, the lowest id on ties
  std::int64_t top_k = 40;          // of the largest logits; 0: all
  double top_p = 0.95;              // smallest set of likeliest tokens with this probability; 1: all
  double min_p = 0.05;              // at least this fraction of the likeliest token's probability; 0: all
  double repeat_penalty = 1.0;      // > 1 weakens tokens of the window (Keskar et al. 2019, CTRL); 1: off
  std::int64_t repeat_window = 64;  // last tokens that are penalised
  std::uint64_t seed = 0;
};

class Sampler {
 public:
  /// Throws Error (invalid_argument) naming the option that makes no sense.
  explicit Sampler(const SamplerOptions& options);

  /// The next token from the logits (vocabulary), which the repetition penalty changes in place. A logit
  /// of minus infinity bans its token. Throws Error (numeric) "non-finite logits at position P" for a NaN,
  /// plus infinity, or when all are banned. `position` is that of the token to come.
  Token sample(std::span<float> logits, std::int64_t position);

  /// Tells the sampler of the next token in the text, of the prompt or sampled, for the repetition penalty.
  void accept(Token token) { text_.push_back(token); }

  /// Forgets the text from token `length` on. Throws invalid_argument when it is not so long.
  void truncate(std::int64_t length);

  const SamplerOptions& options() const { return options_; }

 private:
  struct Candidate {
    float logit;
    Token token;
  };
  static bool before(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  }

  void penalize(std::span<float> logits);
  void select_top_k(std::span<const float> logits);
  Token draw(float largest, std::int64_t position);

  SamplerOptions options_;
  std::vector<Token> text_;
  std::vector<Token> penalized_;
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;  // of the sorted candidates, relative to the likeliest
};

}  // namespace shoal::infer
