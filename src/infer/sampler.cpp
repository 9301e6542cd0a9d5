// SPDX-License-Identifier: Apache-2.0
// Sampling without sorting the vocabulary: one pass finds the k largest, or, without top_k, the likeliest
// are sorted in growing groups until they hold top_p of the probability.
#include "shoal/infer/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "shoal/base/error.h"
#include "shoal/base/random_bits.h"

namespace shoal::infer {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

[[noreturn]] void refuse(const char* option, const char* wants, double value) {
  fail(ErrorCode::invalid_argument, fmt::format("{} must be {}, not {}", option, wants, value));
}

void check(const SamplerOptions& o) {
  if (!(o.temperature >= 0) || std::isinf(o.temperature))
    refuse("temperature", "0 or a positive number", o.temperature);
  if (o.top_k < 0) refuse("top_k", "0 (all) or positive", static_cast<double>(o.top_k));
  if (!(o.top_p > 0 && o.top_p <= 1)) refuse("top_p", "above 0 and at most 1", o.top_p);
  if (!(o.min_p >= 0 && o.min_p <= 1)) refuse("min_p", "from 0 to 1", o.min_p);
  if (!(o.repeat_penalty > 0) || std::isinf(o.repeat_penalty))
    refuse("repeat_penalty", "a positive number", o.repeat_penalty);
  if (o.repeat_window < 0) refuse("repeat_window", "0 or positive", static_cast<double>(o.repeat_window));
}

/// The index of the largest logit, the lowest on ties, found in the pass that checks them all.
std::size_t checked_argmax(std::span<const float> logits, std::int64_t position) {
  std::size_t best = 0;
  float largest = -infinity;
  bool proper = true;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    proper = proper && logits[i] < infinity;  // false for NaN as well
    if (logits[i] > largest) {
      largest = logits[i];
      best = i;
    }
  }
  if (!proper || largest == -infinity)
    fail(ErrorCode::numeric, fmt::format("non-finite logits at position {}", position));
  return best;
}

/// A number in [0, 1) from two others.
double uniform(std::uint64_t seed, std::uint64_t counter) {
  const std::uint64_t bits = mixed_bits(next_bits(seed) + (counter + 1) * golden_step);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options) : options_(options) { check(options); }

Token Sampler::sample(std::span<float> logits, std::int64_t position) {
  if (options_.repeat_penalty != 1.0) penalize(logits);
  const std::size_t best = checked_argmax(logits, position);
  if (options_.temperature == 0 || options_.top_k == 1) return static_cast<Token>(best);
  select_top_k(logits);
  return draw(logits[best], position);
}

void Sampler::truncate(std::int64_t length) {
  if (length < 0 || length > static_cast<std::int64_t>(text_.size()))
    fail(ErrorCode::invalid_argument,
         fmt::format("cannot cut a text of {} tokens to {}", text_.size(), length));
  text_.resize(static_cast<std::size_t>(length));
}

void Sampler::penalize(std::span<float> logits) {
  const auto window = std::min<std::ptrdiff_t>(std::ssize(text_), options_.repeat_window);
  penalized_.assign(text_.end() - window, text_.end());
  std::ranges::sort(penalized_);
  // A token is penalised once.
  penalized_.erase(std::unique(penalized_.begin(), penalized_.end()), penalized_.end());
  const auto penalty = static_cast<float>(options_.repeat_penalty);
  for (const Token token : penalized_) {
    if (token < 0 || static_cast<std::size_t>(token) >= logits.size()) continue;
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

/// candidates_ = the top_k largest logits (all but the banned ones without top_k), in no order.
void Sampler::select_top_k(std::span<const float> logits) {
  candidates_.clear();
  const auto k = options_.top_k == 0 ? logits.size() : static_cast<std::size_t>(options_.top_k);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == -infinity) continue;
    const Candidate candidate{logits[i], static_cast<Token>(i)};
    if (candidates_.size() < k) {
      candidates_.push_back(candidate);
      if (candidates_.size() == k && k < logits.size())
        std::ranges::make_heap(candidates_, before);  // the weakest at the front
      continue;
    }
    // A later one with the same logit comes after: a comparison of the logits is enough.
    if (candidate.logit <= candidates_.front().logit) continue;
    std::ranges::pop_heap(candidates_, before);
    candidates_.back() = candidate;
    std::ranges::push_heap(candidates_, before);
  }
}

/// One of candidates_, after top_p and min_p.
Token Sampler::draw(float largest, std::int64_t position) {
  // In double and relative to the largest logit: a temperature of 1e-30 gives weights 1 and 0.
  const auto weight = [&](const Candidate& c) {
    return std::exp((static_cast<double>(c.logit) - static_cast<double>(largest)) / options_.temperature);
  };
  double all = 0;
  for (const Candidate& c : candidates_) all += weight(c);
  weights_.clear();
  double kept = 0;
  bool done = false;
  const bool all_kept = options_.top_p == 1 && options_.min_p == 0;
  for (std::size_t sorted = 0, group = all_kept ? candidates_.size() : 64;
       sorted < candidates_.size() && !done; group *= 4) {
    const std::size_t end = std::min(candidates_.size(), sorted + group);
    const auto at = [&](std::size_t i) { return candidates_.begin() + static_cast<std::ptrdiff_t>(i); };
    if (!all_kept) {
      if (end < candidates_.size()) std::ranges::nth_element(at(sorted), at(end), candidates_.end(), before);
      std::ranges::sort(at(sorted), at(end), before);
    }
    for (; sorted < end && !done; ++sorted) {
      const double w = weight(candidates_[sorted]);
      if (sorted > 0 && w < options_.min_p) {
        done = true;
        break;
      }
      weights_.push_back(w);
      kept += w;
      done = options_.top_p < 1 && kept >= options_.top_p * all;
    }
  }
  double remaining = uniform(options_.seed, static_cast<std::uint64_t>(position)) * kept;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    remaining -= weights_[i];
    if (remaining < 0) return candidates_[i].token;
  }
  return candidates_[weights_.size() - 1].token;  // rounding of the sums
}

}  // namespace shoal::infer
