// SPDX-License-Identifier: Apache-2.0
// The validated vocabulary of a model file: spellings, kinds, scores and the ids with a meaning.
// What is common to all kinds of tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shoal/infer/tokenizer.h"

namespace shoal::infer {

/// Values of tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

class Vocabulary {
 public:
  explicit Vocabulary(const GgufMetadata& metadata);
  Vocabulary(const Vocabulary&) = delete;  // by_text_ points into texts_
  Vocabulary& operator=(const Vocabulary&) = delete;

  Token size() const { return static_cast<Token>(texts_.size()); }
  bool contains(Token token) const { return token >= 0 && token < size(); }
  const std::string& text(Token token) const { return texts_[static_cast<std::size_t>(token)]; }
  TokenType type(Token token) const { return types_[static_cast<std::size_t>(token)]; }
  bool has_types() const { return has_types_; }
  const std::string& source() const { return source_; }

  /// The token spelled `text`; among several the last, but one that text may become wins over others.
  Token find(std::string_view text) const {
    const auto it = by_text_.find(text);
    return it == by_text_.end() ? no_token : it->second;
  }

  Token bos() const { return bos_; }
  Token eos() const { return eos_; }
  Token unknown() const { return unknown_; }
  bool is_end(Token token) const;
  const std::string& warning() const { return warning_; }

 private:
  void read_types(const GgufMetadata& metadata);
  void force_turn_markers();
  void index_texts();
  Token read_id(const GgufMetadata& metadata, std::string_view key) const;
  Token control_at(Token token) const;

  std::string source_;
  std::vector<std::string> texts_;
  std::vector<TokenType> types_;
  bool has_types_ = false;
  std::unordered_map<std::string_view, Token> by_text_;
  Token bos_ = no_token;
  Token eos_ = no_token;
  Token unknown_ = no_token;
  std::vector<Token> ends_;  // sorted
  std::string warning_;
};

}  // namespace shoal::infer
