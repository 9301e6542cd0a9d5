// SPDX-License-Identifier: Apache-2.0
// Finds tokens that are cut out of a text before it is split into words: user-defined and control
// tokens. A trie, so that a text is searched once however many such tokens there are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shoal/infer/tokenizer.h"

namespace shoal::infer {

class SpecialTokenMatcher {
 public:
  struct Match {
    std::size_t begin = 0;
    std::size_t length = 0;
    Token token = no_token;
  };

  void add(std::string_view text, Token token);

  /// The leftmost match at or after `from`; of several that begin there, the longest.
  std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  std::vector<Token> ends_{no_token};  // per node: the token that ends there; node 0 is the root
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // (node << 8 | byte) -> node
  std::array<bool, 256> first_bytes_{};
};

}  // namespace shoal::infer
