// SPDX-License-Identifier: Apache-2.0
// How a text is cut into words before byte-pair merging. The cut is part of a model: merges never
// cross it. Each named pre-tokenizer is a list of patterns; each pattern cuts the pieces that those
// before it left into its matches and what lies between them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::infer {

class PreTokenizer {
 public:
  /// By the name in tokenizer.ggml.pre. Throws Error (unsupported) that lists the known names.
  PreTokenizer(std::string_view name, const std::string& source);
  ~PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;

  /// The pieces of `text` in order; together they are `text`. Bytes that are not UTF-8 are pieces of
  /// their own, and the text on each side of them is split as if it stood alone.
  std::vector<std::string_view> split(std::string_view text) const;

  /// A word that is a token as a whole is taken without looking at merges (Llama 3).
  bool whole_words_first() const { return whole_words_first_; }
  bool adds_bos_by_default() const { return adds_bos_by_default_; }

 private:
  struct Pattern;
  std::vector<Pattern> patterns_;
  bool whole_words_first_ = false;
  bool adds_bos_by_default_ = false;
};

}  // namespace shoal::infer
