// SPDX-License-Identifier: Apache-2.0
// The text that PE 0 lets the model write.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "options.h"
#include "report.h"
#include "shoal/infer/engine.h"
#include "shoal/infer/tokenizer.h"

namespace shoal::app {

class Generation {
 public:
  /// Borrows all of them; `summary` is added to.
  Generation(infer::Engine& engine, const infer::Tokenizer& tokenizer, const RunOptions& options,
             RunSummary& summary)
      : engine_(engine), tokenizer_(tokenizer), options_(options), summary_(summary) {}

  using Emit = std::function<void(const std::string&)>;

  /// Feeds `prompt`, then generates until an end token, the limit, the end of the context or Ctrl-C.
  /// Calls `emit` with pieces of text as they become complete; `continues` says that the text goes on
  /// where the prompt ends (its first space counts then). Returns true when the model ended the text
  /// itself; the end token has then not been fed. Ctrl-C within the prompt forgets the prompt.
  bool answer(std::span<const infer::Token> prompt, bool continues, const Emit& emit);

  /// Forgets the whole text.
  void reset();

  /// Positions of the context that are free.
  std::int64_t room() const { return engine_.context() - engine_.position(); }
  std::int64_t context() const { return engine_.context(); }

 private:
  bool is_end(infer::Token token) const { return !options_.ignore_end && tokenizer_.is_end(token); }

  infer::Engine& engine_;
  const infer::Tokenizer& tokenizer_;
  const RunOptions& options_;
  RunSummary& summary_;
  std::optional<infer::Token> unfed_;  // shown at the end of an answer that was cut, not yet fed
};

/// Writes to standard output, at once.
void show(const std::string& text);

}  // namespace shoal::app
