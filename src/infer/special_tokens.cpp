// SPDX-License-Identifier: Apache-2.0
// The trie of special tokens.
#include "infer/special_tokens.h"

namespace shoal::infer {
namespace {

std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
}

}  // namespace

void SpecialTokenMatcher::add(std::string_view text, Token token) {
  if (text.empty()) return;
  first_bytes_[static_cast<unsigned char>(text[0])] = true;
  std::uint32_t node = 0;
  for (const char byte : text) {
    const auto [it, inserted] =
        edges_.try_emplace(edge(node, byte), static_cast<std::uint32_t>(ends_.size()));
    if (inserted) ends_.push_back(no_token);
    node = it->second;
  }
  ends_[node] = token;
}

std::optional<SpecialTokenMatcher::Match> SpecialTokenMatcher::find(std::string_view text,
                                                                    std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!first_bytes_[static_cast<unsigned char>(text[begin])]) continue;
    Match match;
    std::uint32_t node = 0;
    for (std::size_t i = begin; i < text.size(); ++i) {
      const auto it = edges_.find(edge(node, text[i]));
      if (it == edges_.end()) break;
      node = it->second;
      if (ends_[node] != no_token) match = {begin, i + 1 - begin, ends_[node]};
    }
    if (match.token != no_token) return match;
  }
  return std::nullopt;
}

}  // namespace shoal::infer
