// SPDX-License-Identifier: Apache-2.0
// Byte-level byte-pair encoding (Radford et al. 2019, "Language models are unsupervised multitask
// learners", section 2.2): words of bytes, neighbours merged in the order of the file's merge list.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "infer/pre_tokenizer.h"
#include "infer/vocabulary.h"

namespace shoal::infer {

/// The bytes that a spelling in a byte-level vocabulary stands for: there every byte is written as a
/// printable character. Characters outside that alphabet stand for themselves.
std::string bytes_of_spelling(std::string_view spelling);

class BpeTokenizer {
 public:
  /// Keeps a reference to `vocabulary`.
  BpeTokenizer(const GgufMetadata& metadata, const Vocabulary& vocabulary, PreTokenizer pre_tokenizer);

  /// Appends the ids of `text`, which holds no special tokens. O(n log n) in the longest word.
  void encode(std::string_view text, std::vector<Token>& out) const;

  const PreTokenizer& pre_tokenizer() const { return pre_tokenizer_; }

 private:
  // A token, or (from vocabulary size on) a string that merges name although it is no token.
  using Piece = std::int32_t;

  struct Merge {
    std::uint64_t key = no_key;  // left << 32 | right
    std::int32_t rank = 0;
    Piece result = 0;
  };
  static constexpr std::uint64_t no_key = ~std::uint64_t{0};

  struct Symbol {
    std::int32_t previous = -1;
    std::int32_t next = -1;
    Piece piece = -1;  // -1: merged into its left neighbour
  };
  struct Candidate {
    std::int32_t rank = 0;
    std::int32_t left = 0;  // index of the left symbol
    Piece left_piece = 0;   // as it was when the candidate was found: tells stale candidates
    Piece right_piece = 0;
  };
  struct Workspace {
    std::vector<Symbol> symbols;
    std::vector<Candidate> queue;
  };

  Token text_token(std::string_view spelling) const;
  void read_merges(const GgufMetadata& metadata);
  void insert_merge(Piece left, Piece right, std::int32_t rank, Piece result);
  const Merge* find_merge(Piece left, Piece right) const;
  void propose(Workspace& work, std::int32_t left) const;
  void encode_word(std::string_view word, Workspace& work, std::vector<Token>& out) const;
  void emit(Piece piece, std::vector<Token>& out) const;
  void emit_byte(unsigned char byte, std::vector<Token>& out) const;

  const Vocabulary& vocabulary_;
  PreTokenizer pre_tokenizer_;
  std::vector<Merge> merges_;              // open addressing, a power of two of places
  std::vector<std::string> extra_pieces_;  // raw bytes of the pieces that are no tokens
  std::array<Piece, 256> byte_pieces_{};
};

}  // namespace shoal::infer
