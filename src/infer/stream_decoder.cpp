// SPDX-License-Identifier: Apache-2.0
// Tokens that arrive one by one as text that is UTF-8 at every moment.
#include "infer/utf8.h"
#include "shoal/infer/tokenizer.h"

namespace shoal::infer {

std::string StreamDecoder::push(Token token) {
  std::string_view bytes = tokenizer_->piece(token);
  if (!bytes.empty() && bytes.front() == ' ' && tokenizer_->adds_space_after(previous_))
    bytes.remove_prefix(1);
  previous_ = token;
  pending_ += bytes;

  std::string complete;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Step::Kind::incomplete) break;
    complete += step.kind == Utf8Step::Kind::valid ? rest.substr(0, step.length) : replacement_character;
    rest.remove_prefix(step.length);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return complete;
}

std::string StreamDecoder::finish() {
  std::string left;
  if (!pending_.empty()) left = replacement_character;
  pending_.clear();
  previous_ = no_token;
  return left;
}

}  // namespace shoal::infer
