// SPDX-License-Identifier: Apache-2.0
#include "infer/random_vocabulary.h"

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

namespace shoal::infer {
namespace {

// U+2581, which stands for a space.
constexpr std::string_view space = "\xe2\x96\x81";

enum TokenType : std::int32_t { normal = 1, unknown = 2, control = 3, byte = 6 };

class Vocabulary {
 public:
  explicit Vocabulary(std::size_t size) : size_(size) {
    add("<unk>", unknown, 0);
    add("<s>", control, 0);
    add("</s>", control, 0);
    for (int value = 0; value < 256; ++value) add(fmt::format("<0x{:02X}>", value), byte, 0);
  }

  bool full() const { return tokens.size() >= size_; }

  /// A piece of text, unless it is there already.
  void add_piece(const std::string& text) {
    if (!full() && seen_.insert(text).second) add(text, normal, -static_cast<float>(tokens.size()));
  }

  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<std::int32_t> types;

 private:
  void add(std::string text, std::int32_t type, float score) {
    tokens.push_back(std::move(text));
    types.push_back(type);
    scores.push_back(score);
  }

  std::size_t size_;
  std::unordered_set<std::string> seen_;
};

void add_characters(Vocabulary& vocabulary) {
  vocabulary.add_piece(std::string(space));
  for (const char c :
       std::string_view("etaoinshrdlucmfwypvbgkqjxz.,!?'\"-:;()ETAOINSHRDLUCMFWYPVBGKQJXZ0123456789\n"))
    vocabulary.add_piece(std::string(1, c));
  for (char c = 0x20; c < 0x7f; ++c)
    if (c != ' ') vocabulary.add_piece(std::string(1, c));
}

/// Frequent words, each with its beginnings, so that merging letter by letter gets to it.
void add_words(Vocabulary& vocabulary) {
  static constexpr std::string_view words[] = {
      "the",  "and",  "to",     "of",    "in",     "was",   "that",  "he",   "she",   "it",   "his",
      "her",  "with", "for",    "had",   "they",   "you",   "said",  "one",  "day",   "time", "there",
      "once", "upon", "little", "very",  "big",    "happy", "but",   "were", "from",  "not",  "what",
      "all",  "when", "would",  "could", "school", "fish",  "water", "sea",  "friend"};
  for (const std::string_view word : words)
    for (std::size_t length = 1; length <= word.size(); ++length)
      vocabulary.add_piece(std::string(space) + std::string(word.substr(0, length)));
}

/// Syllables, then words of two, three and four syllables, with and without a space before them: each is
/// the one before plus a syllable.
void add_syllables(Vocabulary& vocabulary) {
  std::vector<std::string> syllables;
  for (const char vowel : std::string_view("eaoiu"))
    for (const char consonant : std::string_view("tnshrdlcmfwpvbgk")) syllables.push_back({consonant, vowel});
  for (const std::string& syllable : syllables) vocabulary.add_piece(syllable);
  std::vector<std::string> stems = {""};
  while (!vocabulary.full()) {
    std::vector<std::string> longer;
    for (const std::string& stem : stems)
      for (const std::string& syllable : syllables) {
        if (vocabulary.full()) return;
        longer.push_back(stem + syllable);
        vocabulary.add_piece(std::string(space) + longer.back());
        vocabulary.add_piece(longer.back());
      }
    stems = std::move(longer);
  }
}

}  // namespace

void set_random_vocabulary(GgufWriter& writer, std::int64_t size) {
  Vocabulary vocabulary(static_cast<std::size_t>(size));
  add_characters(vocabulary);
  add_words(vocabulary);
  add_syllables(vocabulary);
  writer.set("tokenizer.ggml.model", "llama").set("tokenizer.ggml.pre", "default");
  writer.set("tokenizer.ggml.tokens", vocabulary.tokens).set("tokenizer.ggml.scores", vocabulary.scores);
  writer.set("tokenizer.ggml.token_type", vocabulary.types);
  writer.set("tokenizer.ggml.bos_token_id", std::uint32_t{1})
      .set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
  writer.set("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  writer.set("tokenizer.ggml.add_bos_token", true).set("tokenizer.ggml.add_eos_token", false);
}

}  // namespace shoal::infer
