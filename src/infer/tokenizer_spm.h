// SPDX-License-Identifier: Apache-2.0
// SentencePiece-style encoding (Kudo and Richardson 2018): characters merged by the score of the
// result, spaces written as U+2581, and bytes for what the vocabulary does not have.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "infer/vocabulary.h"

namespace shoal::infer {

/// The value of a byte piece spelled <0xNN>, or -1.
int byte_of_spelling(std::string_view spelling);

/// `text` with every U+2581 as a space.
std::string with_spaces(std::string_view text);

class SpmTokenizer {
 public:
  /// Keeps a reference to `vocabulary`.
  SpmTokenizer(const GgufMetadata& metadata, const Vocabulary& vocabulary);

  /// Appends the ids of `text`, which holds no special tokens. O(n log n).
  void encode(std::string_view text, std::vector<Token>& out) const;

  bool adds_space() const { return add_space_prefix_; }

 private:
  struct Symbol {
    std::int32_t previous = -1;
    std::int32_t next = -1;
    std::uint32_t begin = 0;   // in the text as normalised
    std::uint32_t length = 0;  // bytes; 0: merged into its left neighbour
    Token token = no_token;
  };
  struct Candidate {
    double score = 0;
    std::int32_t left = 0;
    std::uint32_t length = 0;  // of both symbols when the candidate was found: tells stale candidates
    Token token = no_token;
  };
  struct Workspace {
    std::string text;
    std::vector<Symbol> symbols;
    std::vector<Candidate> queue;
  };

  std::string normalize(std::string_view text) const;
  Token text_token(std::string_view spelling) const;
  void propose(Workspace& work, std::int32_t left) const;
  void emit(const Symbol& symbol, const std::string& text, std::vector<Token>& out) const;

  const Vocabulary& vocabulary_;
  std::vector<double> scores_;
  std::array<Token, 256> byte_tokens_{};
  std::size_t longest_ = 0;  // bytes of the longest token that text may become
  bool add_space_prefix_ = true;
  bool remove_extra_whitespaces_ = false;
};

}  // namespace shoal::infer
