// SPDX-License-Identifier: Apache-2.0
// SentencePiece-style encoding: tables from the file, normalisation and the merge loop.
#include "infer/tokenizer_spm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infer/utf8.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

constexpr std::string_view visible_space = "\xE2\x96\x81";  // U+2581

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// One space between words, none at the ends.
std::string collapse_spaces(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ' || (!result.empty() && result.back() != ' ')) result += c;
  }
  if (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

// Heap order: the highest score first, then the leftmost.
constexpr auto later = [](const auto& a, const auto& b) {
  return a.score != b.score ? a.score < b.score : a.left > b.left;
};

}  // namespace

int byte_of_spelling(std::string_view spelling) {
  if (spelling.size() != 6 || spelling.substr(0, 3) != "<0x" || spelling[5] != '>') return -1;
  const int high = hex_digit(spelling[3]), low = hex_digit(spelling[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string with_spaces(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = text.find(visible_space, at);
    result += text.substr(at, found - at);
    if (found == std::string_view::npos) break;
    result += ' ';
    at = found + visible_space.size();
  }
  return result;
}

SpmTokenizer::SpmTokenizer(const GgufMetadata& metadata, const Vocabulary& vocabulary)
    : vocabulary_(vocabulary) {
  add_space_prefix_ = metadata.boolean_or("tokenizer.ggml.add_space_prefix", true);
  remove_extra_whitespaces_ = metadata.boolean_or("tokenizer.ggml.remove_extra_whitespaces", false);
  scores_ = metadata.reals_or_empty("tokenizer.ggml.scores");
  if (scores_.size() != static_cast<std::size_t>(vocabulary_.size())) {
    fail(ErrorCode::format, fmt::format("{}: tokenizer.ggml.scores has {} entries, tokenizer.ggml.tokens {}",
                                        vocabulary_.source(), scores_.size(), vocabulary_.size()));
  }
  byte_tokens_.fill(no_token);
  for (Token token = 0; token < vocabulary_.size(); ++token) {
    if (std::isnan(scores_[static_cast<std::size_t>(token)])) {
      fail(ErrorCode::format,
           fmt::format("{}: tokenizer.ggml.scores[{}] is not a number", vocabulary_.source(), token));
    }
    const std::string& spelled = vocabulary_.text(token);
    longest_ = std::max(longest_, spelled.size());
    const bool is_byte = vocabulary_.type(token) == TokenType::byte;
    const int byte = is_byte || !vocabulary_.has_types() ? byte_of_spelling(spelled) : -1;
    if (is_byte && byte < 0) {
      fail(ErrorCode::format,
           fmt::format("{}: tokenizer.ggml.tokens[{}] is a byte spelled '{}' instead of <0xNN>",
                       vocabulary_.source(), token, spelled));
    }
    if (byte >= 0) byte_tokens_[static_cast<std::size_t>(byte)] = token;
  }
}

// Control tokens, byte pieces and the unknown token are not what typed text becomes, even if it
// spells them.
Token SpmTokenizer::text_token(std::string_view spelling) const {
  const Token token = vocabulary_.find(spelling);
  if (token == no_token) return no_token;
  const TokenType type = vocabulary_.type(token);
  return type == TokenType::normal || type == TokenType::user_defined ? token : no_token;
}

std::string SpmTokenizer::normalize(std::string_view text) const {
  std::string collapsed;
  if (remove_extra_whitespaces_) {
    collapsed = collapse_spaces(text);
    text = collapsed;
  }
  std::string result;
  result.reserve(text.size() + text.size() / 2);
  if (add_space_prefix_ && !text.empty()) result += visible_space;
  for (const char c : text) {
    if (c == ' ') {
      result += visible_space;
    } else {
      result += c;
    }
  }
  return result;
}

void SpmTokenizer::propose(Workspace& work, std::int32_t left) const {
  if (left < 0) return;
  const Symbol& symbol = work.symbols[static_cast<std::size_t>(left)];
  if (symbol.next < 0) return;
  const std::uint32_t length = symbol.length + work.symbols[static_cast<std::size_t>(symbol.next)].length;
  if (length > longest_) return;
  const Token token = text_token(std::string_view(work.text).substr(symbol.begin, length));
  if (token == no_token) return;
  work.queue.push_back({scores_[static_cast<std::size_t>(token)], left, length, token});
  std::push_heap(work.queue.begin(), work.queue.end(), later);
}

void SpmTokenizer::encode(std::string_view text, std::vector<Token>& out) const {
  Workspace work;
  work.text = normalize(text);
  std::vector<Symbol>& symbols = work.symbols;
  for (std::size_t at = 0; at < work.text.size();) {
    const std::size_t length = utf8_step(std::string_view(work.text).substr(at)).length;
    const auto index = static_cast<std::int32_t>(symbols.size());
    if (index > 0) symbols.back().next = index;
    symbols.push_back({index - 1, -1, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                       text_token(std::string_view(work.text).substr(at, length))});
    at += length;
  }
  for (std::size_t i = 0; i < symbols.size(); ++i) propose(work, static_cast<std::int32_t>(i));

  while (!work.queue.empty()) {
    std::pop_heap(work.queue.begin(), work.queue.end(), later);
    const Candidate candidate = work.queue.back();
    work.queue.pop_back();
    Symbol& left = symbols[static_cast<std::size_t>(candidate.left)];
    if (left.length == 0 || left.next < 0) continue;
    Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    if (left.length + right.length != candidate.length) continue;

    left.length = candidate.length;
    left.token = candidate.token;
    right.length = 0;
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = candidate.left;
    propose(work, left.previous);
    propose(work, candidate.left);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.length > 0) emit(symbol, work.text, out);
  }
}

void SpmTokenizer::emit(const Symbol& symbol, const std::string& text, std::vector<Token>& out) const {
  if (symbol.token != no_token) {
    out.push_back(symbol.token);
    return;
  }
  const std::string_view bytes = std::string_view(text).substr(symbol.begin, symbol.length);
  const auto byte_token = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (std::all_of(bytes.begin(), bytes.end(), [&](char c) { return byte_token(c) != no_token; })) {
    for (const char c : bytes) out.push_back(byte_token(c));
  } else if (vocabulary_.unknown() != no_token) {
    out.push_back(vocabulary_.unknown());
  } else {
    fail(ErrorCode::invalid_argument,
         fmt::format("{}: the vocabulary has neither '{}' nor its bytes nor an unknown token",
                     vocabulary_.source(),
                     utf8_step(bytes).kind == Utf8Step::Kind::valid ? bytes : replacement_character));
  }
}

}  // namespace shoal::infer
