// SPDX-License-Identifier: Apache-2.0
// Text to token ids and back, as the model file says: byte-level BPE ("gpt2") or SentencePiece-style
// ("llama"). A tokenizer is immutable after construction and safe to share between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/infer/gguf.h"

namespace shoal::infer {

using Token = std::int32_t;
inline constexpr Token no_token = -1;

enum class SpecialTokens {
  plain,  // control tokens in the text stay text: what a user typed
  parse,  // control tokens in the text become their ids: what a template wrote
};

class Tokenizer {
 public:
  /// From the metadata of a model file. Throws Error (format, unsupported) naming file and key.
  explicit Tokenizer(const GgufMetadata& metadata);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Ids of `text` (any bytes), without BOS or EOS. Time is near-linear in text.size(). User-defined
  /// tokens are found in either mode. Bytes that are not UTF-8 are kept, by byte tokens; only where the
  /// vocabulary has none for them do they become U+FFFD or the unknown token.
  std::vector<Token> encode(std::string_view text, SpecialTokens special = SpecialTokens::plain) const;

  /// encode() with the BOS (and EOS) that the file asks for: what a model is fed for a raw prompt.
  /// A prompt that begins with the spelling of BOS gets no second one (in mode `parse`).
  std::vector<Token> encode_prompt(std::string_view text, SpecialTokens special = SpecialTokens::plain) const;

  /// The text of `tokens`; the inverse of encode, byte for byte. Control tokens give no text.
  /// Throws Error (invalid_argument) for an id outside the vocabulary, as piece() does.
  std::string decode(const std::vector<Token>& tokens) const;

  /// The bytes that one token adds to a text (may be part of a character); empty for control tokens.
  std::string_view piece(Token token) const;

  /// Whether encode puts a space before a text that follows `previous` (no_token: nothing), so that
  /// decode takes one away there. SentencePiece models do, at the start and after special tokens.
  bool adds_space_after(Token previous) const;

  std::int64_t vocabulary() const;
  bool adds_bos() const;
  Token bos() const;  // no_token when there is none
  Token eos() const;
  bool is_end(Token token) const;  // EOS, end of turn, end of text: generation stops here
  bool is_control(Token token) const;
  Token find(std::string_view text) const;  // the token spelled exactly so in the vocabulary, or no_token
  std::string_view model() const;           // "gpt2", "llama"
  std::string_view pre() const;             // name of the pre-tokenizer, "" for none
  const std::string& warning() const;       // what was guessed, for the user; "" for nothing

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Turns a stream of tokens into text that never ends within a character and is always UTF-8: bytes
/// that belong to no character become U+FFFD (decode() keeps them).
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}
  /// The text that has become complete with `token`.
  std::string push(Token token);
  /// What is left at the end (an incomplete character becomes U+FFFD).
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  Token previous_ = no_token;  // SentencePiece drops the space it put before the first word
  std::string pending_;
};

}  // namespace shoal::infer
