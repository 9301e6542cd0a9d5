// SPDX-License-Identifier: Apache-2.0
// How the named pre-tokenizers cut text: by hand, against reference ids, on hostile bytes, in time.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>

#include "infer/pre_tokenizer.h"
#include "infer/vocabularies.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

using testing::data_path;
using testing::read_vectors;

std::vector<std::string> split(std::string_view name, std::string_view text) {
  const PreTokenizer pre(name, "test");
  const std::vector<std::string_view> pieces = pre.split(text);
  return {pieces.begin(), pieces.end()};
}

using Pieces = std::vector<std::string>;
constexpr std::string_view mixed = "3 33 333 3333 I'Ve  \n\n\tx";

TEST(PreTokenizer, Gpt2ByHand) {
  const Pieces expected = {"3", " 33", " 333", " 3333", " I", "'", "Ve", "  \n\n", "\t", "x"};
  EXPECT_EQ(split("gpt-2", mixed), expected);
  EXPECT_EQ(split("gpt-2", "I've we'll  a"), (Pieces{"I", "'ve", " we", "'ll", " ", " a"}));
}

TEST(PreTokenizer, SmollmAndRefactByHand) {
  const Pieces expected = {"3", " ", "3", "3",  " ", "3",  "3",      "3",  " ", "3",
                           "3", "3", "3", " I", "'", "Ve", "  \n\n", "\t", "x"};
  EXPECT_EQ(split("smollm", mixed), expected);
  EXPECT_EQ(split("refact", mixed), expected);
}

TEST(PreTokenizer, LlamaBpeByHand) {
  const Pieces expected = {"3", " ", "33", " ", "333", " ", "333", "3", " I", "'Ve", "  \n\n", "\tx"};
  for (const char* name : {"llama-bpe", "llama3", "llama-v3"})
    EXPECT_EQ(split(name, mixed), expected) << name;
  EXPECT_EQ(split("llama-bpe", "a!!\n\nb   c \n d"), (Pieces{"a", "!!\n\n", "b", "  ", " c", " \n", " d"}));
}

TEST(PreTokenizer, Qwen2ByHand) {
  const Pieces expected = {"3", " ", "3", "3", " ",  "3",   "3",      "3",  " ",
                           "3", "3", "3", "3", " I", "'Ve", "  \n\n", "\tx"};
  EXPECT_EQ(split("qwen2", mixed), expected);
}

TEST(PreTokenizer, DeepseekByHand) {
  const Pieces expected = {"3", " ", "3", "3",  " ", "3",  "3",  "3",  " ",  "3",
                           "3", "3", "3", " I", "'", "Ve", "  ", "\n", "\n", "\tx"};
  EXPECT_EQ(split("deepseek-llm", mixed), expected);
  EXPECT_EQ(split("deepseek-llm", "ab, \xE6\x88\x91\xE6\x83\xB3 x  "),
            (Pieces{"ab", ",", " ", "\xE6\x88\x91\xE6\x83\xB3", " x", "  "}));
}

TEST(PreTokenizer, DefaultByHand) {
  const Pieces expected = {"3", " ", "33", " ", "333", " ", "333", "3", " I", "'", "Ve", "  \n\n", "\t", "x"};
  EXPECT_EQ(split("default", mixed), expected);
  EXPECT_EQ(split("default", "a $5"), (Pieces{"a", " ", "$", "5"}));
}

TEST(PreTokenizer, UnknownNameIsNamedWithTheKnownOnes) {
  try {
    PreTokenizer("gpt-5", "model.gguf");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    const std::string message = error.what();
    for (const char* part :
         {"model.gguf", "tokenizer.ggml.pre", "'gpt-5'", "qwen2", "llama-bpe", "default"}) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
    }
  }
}

const std::vector<std::string> all_names = {"gpt-2", "smollm",       "refact", "llama-bpe",
                                            "qwen2", "deepseek-llm", "default"};

TEST(PreTokenizer, PiecesAreTheTextForEveryTwoBytes) {
  for (const std::string& name : all_names) {
    const PreTokenizer pre(name, "test");
    for (unsigned pair = 0; pair < 65536; ++pair) {
      const std::string text = {static_cast<char>(pair >> 8), static_cast<char>(pair & 255)};
      std::string joined;
      for (const std::string_view piece : pre.split(text)) {
        ASSERT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, text) << name;
    }
  }
}

TEST(PreTokenizer, InvalidBytesStandAlone) {
  for (const char* bytes : {"\xE6\xAD", "\xFF", "\xED", "\xF4"}) {
    const std::string text = std::string("ab") + bytes + "cd";
    EXPECT_EQ(split("gpt-2", text), (Pieces{"ab", bytes, "cd"}));
  }
  // An overlong form, a surrogate, and a character beyond U+10FFFF are no characters.
  for (const char* bytes : {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    Pieces expected;
    for (const char* b = bytes; *b != 0; ++b) expected.emplace_back(1, *b);
    EXPECT_EQ(split("gpt-2", bytes), expected);
  }
}

// The reference ids of these two have no vocabulary here. Still, no token crosses a piece: so there are
// at least as many ids as pieces, and where there are as many, a piece is an id and an id a piece.
void check_against_ids_alone(const std::string& name) {
  const PreTokenizer pre(name, "test");
  std::map<std::string, Token> id_of;
  std::map<Token, std::string> piece_of;
  int texts_of_whole_pieces = 0;
  for (const testing::Vector& vector : read_vectors("vocabs/" + name)) {
    const auto pieces = pre.split(vector.text);
    EXPECT_GE(vector.ids.size(), pieces.size()) << vector.text;
    if (vector.ids.size() != pieces.size()) continue;
    ++texts_of_whole_pieces;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::string piece(pieces[i]);
      const Token id = vector.ids[i];
      EXPECT_EQ(id_of.try_emplace(piece, id).first->second, id) << piece << " in " << vector.text;
      EXPECT_EQ(piece_of.try_emplace(id, piece).first->second, piece) << id << " in " << vector.text;
    }
  }
  EXPECT_GT(texts_of_whole_pieces, 25);
  // Both vocabularies begin with the bytes in the order of the byte alphabet.
  EXPECT_EQ(id_of.at("3"), 18);
  EXPECT_EQ(id_of.at(" "), 220);
  EXPECT_EQ(id_of.at("\n"), 198);
  EXPECT_EQ(id_of.at("\t"), 197);
}

TEST(PreTokenizer, LlamaBpeAgreesWithReferenceIds) {
  SHOAL_NEED_DATA("vocabs/llama-bpe.gguf.inp");
  check_against_ids_alone("llama-bpe");
}

TEST(PreTokenizer, Qwen2AgreesWithReferenceIds) {
  SHOAL_NEED_DATA("vocabs/qwen2.gguf.inp");
  check_against_ids_alone("qwen2");
}

TEST(PreTokenizer, LongRunsAreLinear) {
  constexpr std::size_t size = 1'000'000;
  std::string cjk_after_spaces(size, ' ');
  cjk_after_spaces += "\xE6\x88\x91";
  std::string half_lines;
  while (half_lines.size() < size) half_lines += "   \t \n x1!";
  const std::vector<std::string> texts = {
      std::string(size, 'a'),    std::string(size, ' '),  std::string(size, ' ') + "x",
      std::string(size, '7'),    std::string(size, '\n'), std::string(size, '\''),
      std::string(size, '\xFF'), cjk_after_spaces,        half_lines};
  for (const std::string& name : all_names) {
    const PreTokenizer pre(name, "test");
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      std::size_t bytes = 0;
      for (const std::string_view piece : pre.split(texts[i])) bytes += piece.size();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      EXPECT_EQ(bytes, texts[i].size());
      // Quadratic work on a megabyte would take minutes.
      EXPECT_LT(seconds.count(), 20.0) << name << ", text " << i;
    }
  }
}

}  // namespace
}  // namespace shoal::infer
