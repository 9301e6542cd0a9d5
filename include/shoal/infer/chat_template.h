// SPDX-License-Identifier: Apache-2.0
// Conversations as token ids, in the form that a model was trained on. The template in the file is
// recognised, not executed: families differ in a handful of ways, and text typed by a user must never
// become control tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shoal/infer/tokenizer.h"

namespace shoal::infer {

enum class Role { system, user, assistant };

struct Message {
  Role role = Role::user;
  std::string content;
};

enum class ChatFamily { chatml, llama2 };

class ChatTemplate {
 public:
  /// Recognises the family from tokenizer.chat_template (and the vocabulary). Throws Error
  /// (unsupported) that quotes the beginning of an unknown template and says what to do.
  /// The result refers to `tokenizer`, which must outlive it.
  static ChatTemplate recognize(const GgufMetadata& metadata, const Tokenizer& tokenizer);

  ChatFamily family() const { return family_; }

  /// Ids of the whole conversation, ending where the assistant's next answer begins. With
  /// exactly one BOS where the family has one. The default system message of the template is used
  /// where it has one and `messages` does not begin with a system message. Throws Error
  /// (invalid_argument) for no messages, or an order of roles that the family cannot express.
  std::vector<Token> encode(const std::vector<Message>& messages) const;

  /// Ids that continue a conversation already fed to the model up to and including an answer's last
  /// token, with one more user message: encode() of the longer conversation begins with the fed ids.
  std::vector<Token> encode_next(const Message& user, bool answer_ended) const;

 private:
  ChatTemplate(const Tokenizer& tokenizer, ChatFamily family) : tokenizer_(&tokenizer), family_(family) {}
  std::vector<Token> begin() const;
  void append_chatml(std::vector<Token>& ids, const Message& message) const;
  void open_chatml_answer(std::vector<Token>& ids) const;
  std::vector<Token> encode_chatml(const std::vector<Message>& messages) const;
  std::vector<Token> encode_llama2(const std::vector<Message>& messages) const;

  const Tokenizer* tokenizer_;
  ChatFamily family_;
  std::string default_system_;  // "" for none
  bool writes_bos_ = false;
  Token turn_begin_ = no_token;  // <|im_start|>, where the family has it
  Token turn_end_ = no_token;    // <|im_end|>, or EOS
};

}  // namespace shoal::infer
