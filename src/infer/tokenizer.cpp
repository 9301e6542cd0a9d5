// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a model file: construction, special tokens cut out of the text, and dispatch to
// the two kinds of vocabulary.
#include "shoal/infer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "infer/special_tokens.h"
#include "infer/tokenizer_bpe.h"
#include "infer/tokenizer_spm.h"
#include "infer/vocabulary.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

// Symbols are indexed with 32 bits, and a space takes three bytes in a SentencePiece text.
constexpr std::size_t longest_text_bytes = std::size_t{1} << 29;

bool is_special(TokenType type) {
  return type == TokenType::control || type == TokenType::unknown || type == TokenType::user_defined;
}

// Phi-3 was trained with special tokens that swallow the white space after them, which no key of the
// file says; the exceptions are those of its own tokenizer.
bool swallows_space(const GgufMetadata& metadata) {
  std::string name = metadata.string_or("general.name", "");
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return metadata.string_or("general.architecture", "") == "phi3" ||
         name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

}  // namespace

struct Tokenizer::State {
  explicit State(const GgufMetadata& metadata);

  void read_model(const GgufMetadata& metadata);
  void read_pieces();
  void read_specials();
  void encode_text(std::string_view text, std::vector<Token>& out) const;
  std::string_view piece(Token token) const;

  std::string model;
  std::string pre;
  std::string warning;
  Vocabulary vocabulary;
  std::optional<BpeTokenizer> bpe;
  std::optional<SpmTokenizer> spm;
  SpecialTokenMatcher user_defined;
  SpecialTokenMatcher all_special;
  bool special_swallows_space = false;
  bool add_bos = false;
  bool add_eos = false;
  std::string piece_bytes;  // the text of all tokens, one after the other
  std::vector<std::size_t> piece_begins;
};

Tokenizer::State::State(const GgufMetadata& metadata)
    : model(metadata.string("tokenizer.ggml.model")), vocabulary(metadata) {
  warning = vocabulary.warning();
  read_model(metadata);
  add_bos =
      metadata.boolean_or("tokenizer.ggml.add_bos_token",
                          spm ? vocabulary.bos() != no_token
                              : bpe->pre_tokenizer().adds_bos_by_default() && vocabulary.bos() != no_token);
  add_eos = metadata.boolean_or("tokenizer.ggml.add_eos_token", false);
  if (add_bos && vocabulary.bos() == no_token) {
    fail(ErrorCode::format,
         fmt::format("{}: tokenizer.ggml.add_bos_token is set but tokenizer.ggml.bos_token_id is "
                     "missing",
                     metadata.source));
  }
  if (add_eos && vocabulary.eos() == no_token) {
    fail(ErrorCode::format,
         fmt::format("{}: tokenizer.ggml.add_eos_token is set but tokenizer.ggml.eos_token_id is "
                     "missing",
                     metadata.source));
  }
  if (!warning.empty()) warning.pop_back();  // the space between two sentences
  special_swallows_space = swallows_space(metadata);
  read_pieces();
  read_specials();
}

void Tokenizer::State::read_model(const GgufMetadata& metadata) {
  if (model == "llama") {
    spm.emplace(metadata, vocabulary);
    return;
  }
  if (model != "gpt2") {
    fail(ErrorCode::unsupported,
         fmt::format("{}: tokenizer.ggml.model is '{}', a kind of tokenizer that is not known "
                     "here (known: gpt2, llama)",
                     metadata.source, model));
  }
  if (metadata.has("tokenizer.ggml.pre")) {
    pre = metadata.string("tokenizer.ggml.pre");
  } else {
    pre = "default";
    warning += fmt::format(
        "{}: tokenizer.ggml.pre is missing; using the pre-tokenizer 'default', which may cut numbers "
        "and white space otherwise than the model learnt them. ",
        metadata.source);
  }
  bpe.emplace(metadata, vocabulary, PreTokenizer(pre, metadata.source));
}

// Control tokens have no text. An unknown token says, as SentencePiece does, that something was lost.
void Tokenizer::State::read_pieces() {
  piece_begins.reserve(static_cast<std::size_t>(vocabulary.size()) + 1);
  for (Token token = 0; token < vocabulary.size(); ++token) {
    piece_begins.push_back(piece_bytes.size());
    const std::string& spelled = vocabulary.text(token);
    const TokenType type = vocabulary.type(token);
    if (type == TokenType::control) continue;
    if (type == TokenType::unknown) {
      if (spm && token == vocabulary.unknown()) piece_bytes += " \xE2\x81\x87 ";
    } else if (bpe) {
      piece_bytes += type == TokenType::user_defined ? spelled : bytes_of_spelling(spelled);
    } else if (const int byte =
                   type == TokenType::byte || !vocabulary.has_types() ? byte_of_spelling(spelled) : -1;
               byte >= 0) {
      piece_bytes += static_cast<char>(byte);
    } else {
      piece_bytes += with_spaces(spelled);
    }
  }
  piece_begins.push_back(piece_bytes.size());
}

void Tokenizer::State::read_specials() {
  for (Token token = 0; token < vocabulary.size(); ++token) {
    if (!is_special(vocabulary.type(token))) continue;
    all_special.add(vocabulary.text(token), token);
    if (vocabulary.type(token) == TokenType::user_defined) user_defined.add(vocabulary.text(token), token);
  }
}

void Tokenizer::State::encode_text(std::string_view text, std::vector<Token>& out) const {
  if (bpe) {
    bpe->encode(text, out);
  } else {
    spm->encode(text, out);
  }
}

std::string_view Tokenizer::State::piece(Token token) const {
  if (!vocabulary.contains(token)) {
    fail(ErrorCode::invalid_argument, fmt::format("token {} is outside the vocabulary of {} tokens of {}",
                                                  token, vocabulary.size(), vocabulary.source()));
  }
  const auto index = static_cast<std::size_t>(token);
  return std::string_view(piece_bytes)
      .substr(piece_begins[index], piece_begins[index + 1] - piece_begins[index]);
}

Tokenizer::Tokenizer(const GgufMetadata& metadata) : state_(std::make_unique<State>(metadata)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<Token> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  if (text.size() > longest_text_bytes) {
    fail(ErrorCode::invalid_argument, fmt::format("a text of {} bytes is too long to encode (at most {})",
                                                  text.size(), longest_text_bytes));
  }
  const SpecialTokenMatcher& matcher =
      special == SpecialTokens::parse ? state_->all_special : state_->user_defined;
  std::vector<Token> ids;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto match = matcher.find(text, at);
    const std::size_t end = match ? match->begin : text.size();
    if (end > at) state_->encode_text(text.substr(at, end - at), ids);
    if (!match) break;
    ids.push_back(match->token);
    at = end + match->length;
    if (state_->special_swallows_space) {
      const std::string& spelled = state_->vocabulary.text(match->token);
      const bool keeps = spelled == "<unk>" || spelled == "<s>" || spelled == "<|endoftext|>";
      while (!keeps && at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
    }
  }
  return ids;
}

std::vector<Token> Tokenizer::encode_prompt(std::string_view text, SpecialTokens special) const {
  std::vector<Token> ids = encode(text, special);
  if (state_->add_bos && (ids.empty() || ids.front() != bos())) ids.insert(ids.begin(), bos());
  if (state_->add_eos && (ids.empty() || ids.back() != eos())) ids.push_back(eos());
  return ids;
}

std::string Tokenizer::decode(const std::vector<Token>& tokens) const {
  std::string text;
  Token previous = no_token;
  for (const Token token : tokens) {
    std::string_view bytes = piece(token);
    if (!bytes.empty() && bytes.front() == ' ' && adds_space_after(previous)) bytes.remove_prefix(1);
    text += bytes;
    previous = token;
  }
  return text;
}

std::string_view Tokenizer::piece(Token token) const { return state_->piece(token); }

bool Tokenizer::adds_space_after(Token previous) const {
  if (!state_->spm || !state_->spm->adds_space()) return false;
  return !state_->vocabulary.contains(previous) || is_special(state_->vocabulary.type(previous));
}

std::int64_t Tokenizer::vocabulary() const { return state_->vocabulary.size(); }
bool Tokenizer::adds_bos() const { return state_->add_bos; }
Token Tokenizer::bos() const { return state_->vocabulary.bos(); }
Token Tokenizer::eos() const { return state_->vocabulary.eos(); }
bool Tokenizer::is_end(Token token) const { return state_->vocabulary.is_end(token); }

bool Tokenizer::is_control(Token token) const {
  return state_->vocabulary.contains(token) && state_->vocabulary.type(token) == TokenType::control;
}

Token Tokenizer::find(std::string_view text) const { return state_->vocabulary.find(text); }
std::string_view Tokenizer::model() const { return state_->model; }
std::string_view Tokenizer::pre() const { return state_->pre; }
const std::string& Tokenizer::warning() const { return state_->warning; }

}  // namespace shoal::infer
