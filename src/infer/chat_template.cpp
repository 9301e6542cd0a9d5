// SPDX-License-Identifier: Apache-2.0
// Recognises the family of a chat template and writes conversations in it. The template's own text
// is encoded as ids of control tokens; what people typed is always encoded as plain text.
#include "shoal/infer/chat_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "infer/utf8.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

constexpr std::string_view im_start = "<|im_start|>";
constexpr std::string_view im_end = "<|im_end|>";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view role_name(Role role) {
  switch (role) {
    case Role::system: return "system";
    case Role::user: return "user";
    case Role::assistant: return "assistant";
  }
  return "user";
}

// The first `count` characters on one line, for a message.
std::string quoted_beginning(std::string_view text, std::size_t count) {
  std::string result;
  std::string_view rest = text;
  for (std::size_t i = 0; i < count && !rest.empty(); ++i) {
    const Utf8Step step = utf8_step(rest);
    const std::string_view character = rest.substr(0, step.length);
    if (character == "\n") {
      result += "\\n";
    } else if (step.kind == Utf8Step::Kind::valid && static_cast<unsigned char>(character[0]) >= 0x20) {
      result += character;
    } else {
      result += replacement_character;
    }
    rest.remove_prefix(step.length);
  }
  return fmt::format("\"{}{}\"", result, rest.empty() ? "" : "...");
}

// Reads the quoted literal of a Jinja expression that begins at text[at], a quote; leaves `at` after it.
std::string read_quoted(std::string_view text, std::size_t& at) {
  const char quote = text[at++];
  std::string literal;
  for (; at < text.size() && text[at] != quote; ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      literal += text[at];
      continue;
    }
    const char escaped = text[++at];
    literal += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
  }
  if (at < text.size()) ++at;
  return literal;
}

// The parts of a Jinja template that are written as they stand: text outside of {{ }} and {% %}, and
// quoted literals within.
std::vector<std::string> literals(std::string_view text) {
  std::vector<std::string> found;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t open = at;
    while (open < text.size() &&
           !(text[open] == '{' && open + 1 < text.size() &&
             (text[open + 1] == '{' || text[open + 1] == '%' || text[open + 1] == '#'))) {
      ++open;
    }
    found.emplace_back(text.substr(at, open - at));
    if (open == text.size()) break;
    const char kind = text[open + 1] == '{' ? '}' : text[open + 1];
    at = open + 2;
    while (at < text.size() && !(text[at] == kind && at + 1 < text.size() && text[at + 1] == '}')) {
      if (kind != '#' && (text[at] == '\'' || text[at] == '"')) {
        found.push_back(read_quoted(text, at));
      } else {
        ++at;
      }
    }
    at = std::min(at + 2, text.size());
  }
  return found;
}

// The system message that a ChatML template writes when the conversation has none, or "".
std::string default_system(std::string_view text) {
  const std::string opening = fmt::format("{}system\n", im_start);
  for (const std::string& literal : literals(text)) {
    const std::size_t begin = literal.find(opening);
    if (begin == std::string::npos) continue;
    const std::size_t end = literal.find(im_end, begin + opening.size());
    if (end != std::string::npos) return literal.substr(begin + opening.size(), end - begin - opening.size());
  }
  return "";
}

std::string_view stripped(std::string_view text) {
  constexpr std::string_view spaces = " \t\n\v\f\r";
  const std::size_t begin = text.find_first_not_of(spaces);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(spaces) + 1 - begin);
}

void append(std::vector<Token>& ids, const std::vector<Token>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

[[noreturn]] void fail_unknown(const GgufMetadata& metadata, std::string_view why) {
  fail(
      ErrorCode::unsupported,
      fmt::format("{}: {}; use `shoal run -p` without --chat to give it a raw prompt", metadata.source, why));
}

}  // namespace

ChatTemplate ChatTemplate::recognize(const GgufMetadata& metadata, const Tokenizer& tokenizer) {
  const std::string text = metadata.string_or("tokenizer.chat_template", "");
  if (stripped(text).empty())
    fail_unknown(metadata, "the model has no chat template (tokenizer.chat_template)");
  const bool chatml = contains(text, im_start);
  if (!chatml && !(contains(text, "[INST]") && contains(text, "<<SYS>>"))) {
    fail_unknown(metadata,
                 fmt::format("tokenizer.chat_template is of a family that is not known here (known: ChatML, "
                             "Llama 2): it begins {}",
                             quoted_beginning(text, 60)));
  }
  ChatTemplate result(tokenizer, chatml ? ChatFamily::chatml : ChatFamily::llama2);
  if (chatml) {
    result.turn_begin_ = tokenizer.find(im_start);
    result.turn_end_ = tokenizer.find(im_end);
    if (!tokenizer.is_control(result.turn_begin_) || !tokenizer.is_control(result.turn_end_)) {
      fail_unknown(
          metadata,
          fmt::format("tokenizer.chat_template is ChatML but the vocabulary has no control tokens {} "
                      "and {}: it begins {}",
                      im_start, im_end, quoted_beginning(text, 60)));
    }
    result.default_system_ = default_system(text);
  } else {
    result.turn_end_ = tokenizer.eos();
    if (result.turn_end_ == no_token) {
      fail_unknown(metadata,
                   fmt::format("tokenizer.chat_template is of the Llama 2 family but the model names no EOS "
                               "token: it begins {}",
                               quoted_beginning(text, 60)));
    }
  }
  result.writes_bos_ = tokenizer.bos() != no_token && (tokenizer.adds_bos() || contains(text, "bos_token"));
  return result;
}

std::vector<Token> ChatTemplate::begin() const {
  // A BOS that is also the mark of a turn (SmolLM2) is written by the first turn.
  if (!writes_bos_ || tokenizer_->bos() == turn_begin_) return {};
  return {tokenizer_->bos()};
}

std::vector<Token> ChatTemplate::encode(const std::vector<Message>& messages) const {
  if (messages.empty()) fail(ErrorCode::invalid_argument, "a conversation needs at least one message");
  return family_ == ChatFamily::chatml ? encode_chatml(messages) : encode_llama2(messages);
}

std::vector<Token> ChatTemplate::encode_next(const Message& user, bool answer_ended) const {
  if (user.role != Role::user) {
    fail(ErrorCode::invalid_argument,
         fmt::format("a conversation goes on with a message of the user, not of the {}",
                     role_name(user.role)));
  }
  std::vector<Token> ids;
  if (!answer_ended) ids.push_back(turn_end_);
  if (family_ == ChatFamily::chatml) {
    append(ids, tokenizer_->encode("\n"));
    append_chatml(ids, user);
    open_chatml_answer(ids);
  } else {
    append(ids, tokenizer_->encode(fmt::format("[INST] {} [/INST]", stripped(user.content))));
  }
  return ids;
}

void ChatTemplate::append_chatml(std::vector<Token>& ids, const Message& message) const {
  const std::string header = fmt::format("{}\n", role_name(message.role));
  ids.push_back(turn_begin_);
  if (message.role == Role::assistant && tokenizer_->model() == "gpt2") {
    // As it came into being: the answer's tokens after a header that was complete, never merged with it.
    append(ids, tokenizer_->encode(header));
    append(ids, tokenizer_->encode(message.content));
  } else {
    append(ids, tokenizer_->encode(header + message.content));
  }
  ids.push_back(turn_end_);
}

void ChatTemplate::open_chatml_answer(std::vector<Token>& ids) const {
  append(ids, tokenizer_->encode("\n"));
  ids.push_back(turn_begin_);
  append(ids, tokenizer_->encode("assistant\n"));
}

std::vector<Token> ChatTemplate::encode_chatml(const std::vector<Message>& messages) const {
  std::vector<Token> ids = begin();
  const std::vector<Token> line_end = tokenizer_->encode("\n");
  if (!default_system_.empty() && messages.front().role != Role::system) {
    append_chatml(ids, {Role::system, default_system_});
    append(ids, line_end);
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (i > 0) append(ids, line_end);
    append_chatml(ids, messages[i]);
  }
  open_chatml_answer(ids);
  return ids;
}

std::vector<Token> ChatTemplate::encode_llama2(const std::vector<Message>& messages) const {
  std::vector<Token> ids = begin();
  std::size_t i = 0;
  std::string system;
  if (messages[0].role == Role::system) {
    system = fmt::format("<<SYS>>\n{}\n<</SYS>>\n\n", stripped(messages[0].content));
    i = 1;
  }
  Role expected = Role::user;
  for (; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (message.role != expected) {
      fail(
          ErrorCode::invalid_argument,
          fmt::format(
              "message {} is of the {}, but this model's conversations alternate between user and assistant, "
              "after at most one system message: expected one of the {}",
              i + 1, role_name(message.role), role_name(expected)));
    }
    if (message.role == Role::user) {
      append(ids, tokenizer_->encode(fmt::format("[INST] {}{} [/INST]", system, stripped(message.content))));
      system.clear();
      expected = Role::assistant;
    } else {
      // One space before the answer, which a SentencePiece vocabulary brings by itself.
      const bool own_space = tokenizer_->adds_space_after(no_token);
      append(ids, tokenizer_->encode(own_space ? message.content : " " + message.content));
      ids.push_back(turn_end_);
      expected = Role::user;
    }
  }
  if (expected == Role::user) {
    fail(ErrorCode::invalid_argument, "a conversation must end with a message of the user to be answered");
  }
  return ids;
}

}  // namespace shoal::infer
