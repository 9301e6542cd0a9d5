// SPDX-License-Identifier: Apache-2.0
#include "generation.h"

#include <chrono>
#include <cstdio>
#include <vector>

#include "interrupt.h"

namespace shoal::app {

void show(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void Generation::reset() {
  engine_.truncate(0);
  unfed_.reset();
}

bool Generation::answer(std::span<const infer::Token> prompt, bool continues, const Emit& emit) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  infer::StreamDecoder decoder(tokenizer_);
  if (continues)
    for (const infer::Token token : prompt) decoder.push(token);
  std::vector<infer::Token> fed;
  if (unfed_) fed.push_back(*unfed_);
  fed.insert(fed.end(), prompt.begin(), prompt.end());

  auto start = Clock::now();
  const std::int64_t before = engine_.position();
  infer::Token next = engine_.feed(fed, interrupted);
  if (next == infer::no_token) {
    engine_.truncate(before);
    summary_.finish = "interrupted";
    return false;
  }
  unfed_.reset();
  summary_.prompt_tokens += std::ssize(prompt);
  summary_.prompt_s += seconds_since(start);
  summary_.finish = "length";
  if (options_.predict == 0) return false;

  start = Clock::now();
  std::int64_t generated = 0;
  for (;;) {
    if (is_end(next)) {
      summary_.finish = "end";
      break;
    }
    summary_.tokens.push_back(next);
    ++generated;
    emit(decoder.push(next));
    const bool enough = options_.predict >= 0 && generated >= options_.predict;
    if (interrupted()) summary_.finish = "interrupted";
    if (enough || interrupted() || room() == 0) {
      unfed_ = next;
      break;
    }
    next = engine_.feed(std::span(&next, 1));
  }
  summary_.generate_s += seconds_since(start);
  emit(decoder.finish());
  return summary_.finish == "end";
}

}  // namespace shoal::app
