// SPDX-License-Identifier: Apache-2.0
// Byte-level byte-pair encoding: tables from the file, and the merge loop.
#include "infer/tokenizer_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

#include "infer/utf8.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

// The byte alphabet of GPT-2: printable Latin-1 characters stand for their own bytes, the other 68
// bytes, in order, for the characters from U+0100 on.
struct ByteAlphabet {
  std::array<std::uint16_t, 256> character{};
  std::array<std::int16_t, 256 + 68> byte{};  // -1: not in the alphabet

  constexpr ByteAlphabet() {
    for (auto& entry : byte) entry = -1;
    std::uint16_t next = 256;
    for (std::size_t b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD);
      character[b] = printable ? static_cast<std::uint16_t>(b) : next++;
      byte[character[b]] = static_cast<std::int16_t>(b);
    }
  }
};
constexpr ByteAlphabet alphabet;

void append_spelling(std::string& spelling, unsigned char byte) {
  const unsigned character = alphabet.character[byte];
  if (character < 0x80) {
    spelling += static_cast<char>(character);
  } else {
    spelling += static_cast<char>(0xC0 | character >> 6);
    spelling += static_cast<char>(0x80 | (character & 0x3F));
  }
}

std::string spelling_of_bytes(std::string_view bytes) {
  std::string spelling;
  for (const char byte : bytes) append_spelling(spelling, static_cast<unsigned char>(byte));
  return spelling;
}

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

std::size_t place_of(std::uint64_t key, std::size_t places) {
  // Fibonacci hashing: the upper bits of the product depend on all bits of the key.
  const std::uint64_t mixed = (key ^ key >> 29) * 0x9E3779B97F4A7C15U;
  return static_cast<std::size_t>(mixed >> 32) & (places - 1);
}

}  // namespace

std::string bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  for (std::size_t at = 0; at < spelling.size();) {
    const Utf8Step step = utf8_step(spelling.substr(at));
    const auto lead = static_cast<unsigned char>(spelling[at]);
    unsigned character = lead;
    if (step.length == 2)
      character = (lead & 0x1FU) << 6 | (static_cast<unsigned char>(spelling[at + 1]) & 0x3FU);
    const bool known = step.kind == Utf8Step::Kind::valid && step.length <= 2 &&
                       character < alphabet.byte.size() && alphabet.byte[character] >= 0;
    if (known) {
      bytes += static_cast<char>(alphabet.byte[character]);
    } else {
      bytes += spelling.substr(at, step.length);
    }
    at += step.length;
  }
  return bytes;
}

BpeTokenizer::BpeTokenizer(const GgufMetadata& metadata, const Vocabulary& vocabulary,
                           PreTokenizer pre_tokenizer)
    : vocabulary_(vocabulary), pre_tokenizer_(std::move(pre_tokenizer)) {
  for (unsigned b = 0; b < 256; ++b) {
    const std::string byte(1, static_cast<char>(b));
    const Token token = text_token(spelling_of_bytes(byte));
    byte_pieces_[b] = token;
    if (token == no_token) {
      byte_pieces_[b] = vocabulary_.size() + static_cast<Piece>(extra_pieces_.size());
      extra_pieces_.push_back(byte);
    }
  }
  read_merges(metadata);
}

// Control tokens are not what text becomes, and a user-defined token is spelled plainly, not in the
// byte alphabet.
Token BpeTokenizer::text_token(std::string_view spelling) const {
  const Token token = vocabulary_.find(spelling);
  if (token == no_token) return no_token;
  const TokenType type = vocabulary_.type(token);
  return type == TokenType::normal || type == TokenType::byte ? token : no_token;
}

void BpeTokenizer::read_merges(const GgufMetadata& metadata) {
  const std::vector<std::string>& lines = metadata.strings("tokenizer.ggml.merges");
  if (lines.size() > std::size_t{1} << 28) {
    fail(ErrorCode::format, fmt::format("{}: tokenizer.ggml.merges has {} entries, too many",
                                        vocabulary_.source(), lines.size()));
  }
  merges_.resize(std::bit_ceil(lines.size() * 2 + 2));

  std::unordered_map<std::string, Piece> extra;  // spelling -> piece
  for (const auto piece : byte_pieces_) {
    if (piece < vocabulary_.size()) continue;
    extra.emplace(spelling_of_bytes(extra_pieces_[static_cast<std::size_t>(piece - vocabulary_.size())]),
                  piece);
  }
  // Public files name merges whose parts or result are not in the vocabulary: those stay possible as
  // intermediate steps.
  const auto piece_of = [&](std::string_view spelling) {
    if (const Token token = text_token(spelling); token != no_token) return token;
    const auto next = vocabulary_.size() + static_cast<Piece>(extra_pieces_.size());
    const auto [it, inserted] = extra.try_emplace(std::string(spelling), next);
    if (inserted) extra_pieces_.push_back(bytes_of_spelling(spelling));
    return it->second;
  };

  std::string joined;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size()) {
      fail(ErrorCode::format,
           fmt::format("{}: tokenizer.ggml.merges[{}] is '{}', not two pieces with a space between",
                       vocabulary_.source(), i, line));
    }
    const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
    joined.assign(left).append(right);
    const Piece left_piece = piece_of(left), right_piece = piece_of(right);
    insert_merge(left_piece, right_piece, static_cast<std::int32_t>(i), piece_of(joined));
  }
}

// The first of two equal merges counts, as in the reference implementations.
void BpeTokenizer::insert_merge(Piece left, Piece right, std::int32_t rank, Piece result) {
  const std::uint64_t key = pair_key(left, right);
  std::size_t place = place_of(key, merges_.size());
  while (merges_[place].key != no_key) {
    if (merges_[place].key == key) return;
    place = (place + 1) & (merges_.size() - 1);
  }
  merges_[place] = {key, rank, result};
}

const BpeTokenizer::Merge* BpeTokenizer::find_merge(Piece left, Piece right) const {
  const std::uint64_t key = pair_key(left, right);
  for (std::size_t place = place_of(key, merges_.size());; place = (place + 1) & (merges_.size() - 1)) {
    if (merges_[place].key == key) return &merges_[place];
    if (merges_[place].key == no_key) return nullptr;
  }
}

void BpeTokenizer::encode(std::string_view text, std::vector<Token>& out) const {
  Workspace work;
  std::string spelling;
  for (const std::string_view word : pre_tokenizer_.split(text)) {
    if (pre_tokenizer_.whole_words_first()) {
      spelling.clear();
      for (const char byte : word) append_spelling(spelling, static_cast<unsigned char>(byte));
      if (const Token token = text_token(spelling); token != no_token) {
        out.push_back(token);
        continue;
      }
    }
    encode_word(word, work, out);
  }
}

namespace {

// Heap order: the lowest rank first, then the leftmost.
constexpr auto later = [](const auto& a, const auto& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
};

}  // namespace

void BpeTokenizer::propose(Workspace& work, std::int32_t left) const {
  if (left < 0) return;
  const Symbol& symbol = work.symbols[static_cast<std::size_t>(left)];
  if (symbol.next < 0) return;
  const Piece right = work.symbols[static_cast<std::size_t>(symbol.next)].piece;
  if (const Merge* merge = find_merge(symbol.piece, right)) {
    work.queue.push_back({merge->rank, left, symbol.piece, right});
    std::push_heap(work.queue.begin(), work.queue.end(), later);
  }
}

void BpeTokenizer::encode_word(std::string_view word, Workspace& work, std::vector<Token>& out) const {
  std::vector<Symbol>& symbols = work.symbols;
  const auto count = static_cast<std::int32_t>(word.size());
  symbols.resize(word.size());
  for (std::int32_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    symbols[at] = {i - 1, i + 1 < count ? i + 1 : -1, byte_pieces_[static_cast<unsigned char>(word[at])]};
  }
  work.queue.clear();
  for (std::int32_t i = 0; i + 1 < count; ++i) propose(work, i);

  while (!work.queue.empty()) {
    std::pop_heap(work.queue.begin(), work.queue.end(), later);
    const Candidate candidate = work.queue.back();
    work.queue.pop_back();
    Symbol& left = symbols[static_cast<std::size_t>(candidate.left)];
    if (left.piece != candidate.left_piece || left.next < 0) continue;
    Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    if (right.piece != candidate.right_piece) continue;

    left.piece = find_merge(candidate.left_piece, candidate.right_piece)->result;
    right.piece = -1;
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = candidate.left;
    propose(work, left.previous);
    propose(work, candidate.left);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.piece >= 0) emit(symbol.piece, out);
  }
}

void BpeTokenizer::emit(Piece piece, std::vector<Token>& out) const {
  if (piece < vocabulary_.size()) {
    out.push_back(piece);
    return;
  }
  for (const char byte : extra_pieces_[static_cast<std::size_t>(piece - vocabulary_.size())]) {
    emit_byte(static_cast<unsigned char>(byte), out);
  }
}

// Some vocabularies lack the bytes that never occur in UTF-8: such a byte becomes U+FFFD.
void BpeTokenizer::emit_byte(unsigned char byte, std::vector<Token>& out) const {
  const auto is_token = [&](char c) {
    return byte_pieces_[static_cast<unsigned char>(c)] < vocabulary_.size();
  };
  if (byte_pieces_[byte] < vocabulary_.size()) {
    out.push_back(byte_pieces_[byte]);
  } else if (std::all_of(replacement_character.begin(), replacement_character.end(), is_token)) {
    for (const char c : replacement_character) out.push_back(byte_pieces_[static_cast<unsigned char>(c)]);
  } else if (vocabulary_.unknown() != no_token) {
    out.push_back(vocabulary_.unknown());
  } else {
    fail(ErrorCode::invalid_argument,
         fmt::format("{}: the vocabulary has no token for the byte 0x{:02X}, and no unknown token",
                     vocabulary_.source(), byte));
  }
}

}  // namespace shoal::infer
