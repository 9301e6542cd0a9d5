// SPDX-License-Identifier: Apache-2.0
// Reads and validates the tokenizer.ggml.* keys that all kinds of tokenizer share.
#include "infer/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

// Spellings that end a turn or a text in the model families in use. Files do not always name them
// by a key, so a control token spelled so is taken as an end.
constexpr std::array<std::string_view, 16> end_spellings = {
    "</s>",
    "<|endoftext|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|eot|>",
    "<|end_of_text|>",
    "<|endofturn|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<EOT>",
    "<eos>",
    "<|return|>",
    "<|end_of_sentence|>",
    "<｜end▁of▁sentence｜>",
};

// Markers of turns that some converters label as ordinary text. Left so, a user could type them.
constexpr std::array<std::string_view, 10> turn_markers = {
    "<|im_start|>",      "<|im_end|>",    "<|eot_id|>", "<|eom_id|>",      "<|start_header_id|>",
    "<|end_header_id|>", "<|endoftext|>", "<|end|>",    "<start_of_turn>", "<end_of_turn>",
};

}  // namespace

Vocabulary::Vocabulary(const GgufMetadata& metadata) : source_(metadata.source) {
  texts_ = metadata.strings("tokenizer.ggml.tokens");
  if (texts_.empty()) fail(ErrorCode::format, fmt::format("{}: tokenizer.ggml.tokens is empty", source_));
  if (texts_.size() > static_cast<std::size_t>(std::numeric_limits<Token>::max() / 2)) {
    fail(ErrorCode::format,
         fmt::format("{}: tokenizer.ggml.tokens has {} entries, too many", source_, texts_.size()));
  }
  read_types(metadata);
  force_turn_markers();
  index_texts();

  bos_ = read_id(metadata, "tokenizer.ggml.bos_token_id");
  eos_ = read_id(metadata, "tokenizer.ggml.eos_token_id");
  unknown_ = read_id(metadata, "tokenizer.ggml.unknown_token_id");
  read_id(metadata, "tokenizer.ggml.padding_token_id");
  if (metadata.string("tokenizer.ggml.model") == "llama") {
    // Old files of SentencePiece vocabularies leave out the ids that the format fixes by default.
    if (!metadata.has("tokenizer.ggml.bos_token_id")) bos_ = control_at(1);
    if (!metadata.has("tokenizer.ggml.eos_token_id")) eos_ = control_at(2);
    if (unknown_ == no_token && type(0) == TokenType::unknown) unknown_ = 0;
  }

  for (const std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    if (const Token token = read_id(metadata, key); token != no_token) ends_.push_back(token);
  }
  if (eos_ != no_token) ends_.push_back(eos_);
  for (const std::string_view spelling : end_spellings) {
    const Token token = find(spelling);
    if (token != no_token && type(token) == TokenType::control) ends_.push_back(token);
  }
  std::sort(ends_.begin(), ends_.end());
}

void Vocabulary::read_types(const GgufMetadata& metadata) {
  types_.assign(texts_.size(), TokenType::normal);
  has_types_ = metadata.has("tokenizer.ggml.token_type");
  if (!has_types_) return;
  const std::vector<std::int64_t> types = metadata.integers_or_empty("tokenizer.ggml.token_type");
  if (types.size() != texts_.size()) {
    fail(ErrorCode::format,
         fmt::format("{}: tokenizer.ggml.token_type has {} entries, tokenizer.ggml.tokens {}", source_,
                     types.size(), texts_.size()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] < 0 || types[i] > static_cast<std::int64_t>(TokenType::byte)) {
      fail(ErrorCode::format,
           fmt::format("{}: tokenizer.ggml.token_type[{}] is {}, not in 0..6", source_, i, types[i]));
    }
    if (types[i] != 0) types_[i] = static_cast<TokenType>(types[i]);  // 0: not said
  }
}

void Vocabulary::force_turn_markers() {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const std::string& spelled = texts_[i];
    if (spelled.size() < 7 || spelled.front() != '<') continue;
    if (types_[i] != TokenType::normal && types_[i] != TokenType::user_defined) continue;
    if (std::find(turn_markers.begin(), turn_markers.end(), spelled) == turn_markers.end()) continue;
    types_[i] = TokenType::control;
    warning_ += fmt::format("{}: token {} ({}) is not marked as a control token; taken as one. ", source_, i,
                            spelled);
  }
}

void Vocabulary::index_texts() {
  by_text_.reserve(texts_.size());
  const auto is_text = [&](Token token) {
    return type(token) == TokenType::normal || type(token) == TokenType::user_defined;
  };
  for (Token token = 0; token < size(); ++token) {
    const auto [it, inserted] = by_text_.try_emplace(text(token), token);
    if (!inserted && (is_text(token) || !is_text(it->second))) it->second = token;
  }
}

Token Vocabulary::read_id(const GgufMetadata& metadata, std::string_view key) const {
  if (!metadata.has(key)) return no_token;
  const std::int64_t id = metadata.integer(key);
  if (id < 0 || id >= size()) {
    fail(ErrorCode::format,
         fmt::format("{}: {} is {}, outside the vocabulary of {} tokens", source_, key, id, size()));
  }
  return static_cast<Token>(id);
}

Token Vocabulary::control_at(Token token) const {
  return contains(token) && type(token) == TokenType::control ? token : no_token;
}

bool Vocabulary::is_end(Token token) const { return std::binary_search(ends_.begin(), ends_.end(), token); }

}  // namespace shoal::infer
