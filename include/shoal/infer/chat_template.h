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
  static ChatTemplate recognize(const GgufMetadata& metadata, const Tokenizer& tokenizer);

  ChatFamily family() const { return family_; }

  /// Ids of the whole conversation, ending where the assistant's next answer begins. With
  /// exactly one BOS where the family has one. The default system message of the template is used
  /// where it has one and `messages` does not begin with a system message.
  std::vector<Token> encode(const std::vector<Message>& messages) const;

  /// Ids that continue a conversation already fed to the model up to and including an answer's last
  /// token, with one more user message: encode() of the longer conversation begins with the fed ids.
  std::vector<Token> encode_next(const Message& user, bool answer_ended) const;

 private:
  ChatTemplate(const Tokenizer& tokenizer, ChatFamily family, std::string default_system)
      : tokenizer_(&tokenizer), family_(family), default_system_(std::move(default_system)) {}
  const Tokenizer* tokenizer_;
  ChatFamily family_;
  std::string default_system_;
};

}  // namespace shoal::infer
