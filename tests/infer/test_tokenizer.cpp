// SPDX-License-Identifier: Apache-2.0
// Tokenizers against reference ids, as inverses, on hostile text and hostile files.
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <random>

#include "infer/vocabularies.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder's tests
using Ids = std::vector<Token>;

class ReferenceVocabulary : public ::testing::TestWithParam<const char*> {};

TEST_P(ReferenceVocabulary, EncodesAsTheReference) {
  const std::string name = GetParam();
  SHOAL_NEED_DATA("vocabs/" + name + ".gguf");
  const Tokenizer tokenizer = load_tokenizer("vocabs/" + name + ".gguf");
  const std::vector<Vector> vectors = read_vectors("vocabs/" + name);
  ASSERT_EQ(vectors.size(), 46U);
  for (const Vector& vector : vectors) EXPECT_EQ(tokenizer.encode(vector.text), vector.ids) << vector.text;
}

TEST_P(ReferenceVocabulary, DecodeIsTheInverse) {
  const std::string name = GetParam();
  SHOAL_NEED_DATA("vocabs/" + name + ".gguf");
  const Tokenizer tokenizer = load_tokenizer("vocabs/" + name + ".gguf");
  std::string all;
  for (const Vector& vector : read_vectors("vocabs/" + name)) {
    EXPECT_EQ(tokenizer.decode(vector.ids), vector.text);
    all += vector.text;
  }
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(all)), all);
}

TEST_P(ReferenceVocabulary, StreamShowsWholeCharactersOnly) {
  const std::string name = GetParam();
  SHOAL_NEED_DATA("vocabs/" + name + ".gguf");
  const Tokenizer tokenizer = load_tokenizer("vocabs/" + name + ".gguf");
  for (const Vector& vector : read_vectors("vocabs/" + name)) {
    StreamDecoder stream(tokenizer);
    std::string shown;
    for (const Token id : vector.ids) {
      shown += stream.push(id);
      ASSERT_EQ(vector.text.compare(0, shown.size(), shown), 0);
      const bool within = shown.size() < vector.text.size() &&
                          (static_cast<unsigned char>(vector.text[shown.size()]) & 0xC0) == 0x80;
      ASSERT_FALSE(within) << "after " << shown;
    }
    EXPECT_EQ(shown + stream.finish(), vector.text);
  }
}

TEST_P(ReferenceVocabulary, NamesControlTokens) {
  const std::string name = GetParam();
  SHOAL_NEED_DATA("vocabs/" + name + ".gguf");
  const Tokenizer tokenizer = load_tokenizer("vocabs/" + name + ".gguf");
  EXPECT_TRUE(tokenizer.is_control(tokenizer.bos()));
  EXPECT_TRUE(tokenizer.is_end(tokenizer.eos()));
  EXPECT_EQ(tokenizer.piece(tokenizer.bos()), "");
  const Token letter = tokenizer.encode("Hello").front();
  EXPECT_FALSE(tokenizer.is_control(letter));
  EXPECT_FALSE(tokenizer.is_end(letter));
  EXPECT_EQ(tokenizer.warning(), "");
}

// What a user types never becomes a control token; with `parse` each spelling becomes its token.
TEST_P(ReferenceVocabulary, TypedControlTokensStayText) {
  const std::string name = GetParam();
  SHOAL_NEED_DATA("vocabs/" + name + ".gguf");
  const GgufMetadata metadata = ModelFile::open(data_path("vocabs/" + name + ".gguf")).metadata();
  const Tokenizer tokenizer(metadata);
  int controls = 0;
  for (const std::string& spelled : metadata.strings("tokenizer.ggml.tokens")) {
    const Token token = tokenizer.find(spelled);
    if (!tokenizer.is_control(token)) continue;
    ++controls;
    const std::string text = "A" + spelled + "B";
    const Ids plain = tokenizer.encode(text);
    EXPECT_TRUE(std::none_of(plain.begin(), plain.end(), [&](Token id) { return tokenizer.is_control(id); }));
    EXPECT_EQ(tokenizer.decode(plain), text);
    const Ids parsed = tokenizer.encode(text, SpecialTokens::parse);
    EXPECT_EQ(std::count(parsed.begin(), parsed.end(), token), 1) << spelled;
    EXPECT_EQ(tokenizer.decode(parsed), "AB");
  }
  EXPECT_GT(controls, 0);
}

INSTANTIATE_TEST_SUITE_P(Files, ReferenceVocabulary,
                         ::testing::Values("llama-spm", "phi-3", "gpt-2", "deepseek-llm", "refact"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

void expect_two_bytes_round_trip(const Tokenizer& tokenizer) {
  for (unsigned pair = 0; pair < 65536; ++pair) {
    const std::string text = {static_cast<char>(pair >> 8), static_cast<char>(pair & 255)};
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << std::hex << pair;
  }
}

TEST(Tokenizer, EveryTwoBytesRoundTrip) {
  expect_two_bytes_round_trip(Tokenizer(tiny_bpe()));
  expect_two_bytes_round_trip(Tokenizer(tiny_spm()));
}

TEST(Tokenizer, EveryTwoBytesRoundTripInReferenceVocabularies) {
  SHOAL_NEED_DATA("vocabs/gpt-2.gguf");
  for (const char* name : {"vocabs/gpt-2.gguf", "vocabs/llama-spm.gguf", "vocabs/phi-3.gguf"}) {
    SCOPED_TRACE(name);
    expect_two_bytes_round_trip(load_tokenizer(name));
  }
}

// These two have no tokens for bytes that their training text did not contain. All others are kept.
TEST(Tokenizer, BytesThatAVocabularyLacksBecomeTheReplacementCharacter) {
  SHOAL_NEED_DATA("vocabs/deepseek-llm.gguf");
  const std::pair<const char*, int> files[] = {{"vocabs/deepseek-llm.gguf", 13}, {"vocabs/refact.gguf", 14}};
  for (const auto& [name, lacking] : files) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = load_tokenizer(name);
    std::vector<std::string> shown;
    int replaced = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::string raw(1, static_cast<char>(byte));
      const Token token = tokenizer.find(byte_spelling(byte));
      const bool kept = token != no_token && tokenizer.piece(token) == raw;
      shown.push_back(kept ? raw : "\xEF\xBF\xBD");
      replaced += !kept;
    }
    EXPECT_EQ(replaced, lacking);
    for (unsigned pair = 0; pair < 65536; ++pair) {
      const std::string text = {static_cast<char>(pair >> 8), static_cast<char>(pair & 255)};
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), shown[pair >> 8] + shown[pair & 255])
          << std::hex << pair;
    }
  }
}

TEST(Tokenizer, ByteFallback) {
  SHOAL_NEED_DATA("vocabs/llama-spm.gguf");
  const Tokenizer tokenizer = load_tokenizer("vocabs/llama-spm.gguf");
  const Ids ids = tokenizer.encode("This is \xF0\x9F\xA6\x99.cpp");
  const Ids emoji = {243, 162, 169, 156};
  EXPECT_NE(std::search(ids.begin(), ids.end(), emoji.begin(), emoji.end()), ids.end());
  EXPECT_EQ(tokenizer.decode(ids), "This is \xF0\x9F\xA6\x99.cpp");
  EXPECT_EQ(tokenizer.encode("<0x41>").size(),
            6U + 1U - 1U);  // typed, it is no byte: six pieces, "▁<" joined
}

TEST(Tokenizer, WithoutBytePiecesTheUnknownTokenStands) {
  const Tokenizer tokenizer(tiny_spm(false));
  const Token unknown = 0;
  EXPECT_EQ(tokenizer.encode("hi\xF0\x9F\xA6\x99hi"),
            (Ids{tokenizer.find("\xE2\x96\x81hi"), unknown, tokenizer.find("hi")}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("hi\xF0\x9F\xA6\x99hi")), "hi \xE2\x81\x87 hi");
  GgufMetadata none = tiny_spm(false);
  std::get<GgufArray>(none.entries[2].value.value).values = std::vector<std::int64_t>(14, 1);
  erase(none, "tokenizer.ggml.unknown_token_id");
  EXPECT_THROW(Tokenizer(none).encode("Z"), Error);
}

// T07: a space is put before a text at the start and after a special token, if the file says so.
TEST(Tokenizer, SpaceBesideSpecialTokens) {
  SHOAL_NEED_DATA("vocabs/llama-spm.gguf");
  GgufMetadata metadata = ModelFile::open(data_path("vocabs/llama-spm.gguf")).metadata();
  const Tokenizer with(metadata);
  const auto parse = SpecialTokens::parse;
  EXPECT_EQ(with.encode("<s>Hello", parse), (Ids{1, 15043}));
  EXPECT_EQ(with.encode("Hello<s>Hello world", parse), (Ids{15043, 1, 15043, 3186}));
  EXPECT_EQ(with.encode("</s> Hello", parse), (Ids{2, 29871, 15043}));
  EXPECT_EQ(with.encode("<s></s>", parse), (Ids{1, 2}));
  EXPECT_EQ(with.encode("Hello</s>", parse), (Ids{15043, 2}));
  EXPECT_EQ(with.encode("<s>\n", parse), (Ids{1, 29871, 13}));
  EXPECT_EQ(with.decode({1, 15043, 3186}), "Hello world");
  EXPECT_EQ(with.decode({1, 29871, 15043}), " Hello");
  EXPECT_TRUE(with.adds_space_after(no_token));
  EXPECT_TRUE(with.adds_space_after(1));
  EXPECT_FALSE(with.adds_space_after(15043));

  set(metadata, "tokenizer.ggml.add_space_prefix", boolean_value(false));
  const Tokenizer without(metadata);
  EXPECT_EQ(without.encode("<s>Hello", parse), (Ids{1, 10994}));
  EXPECT_EQ(without.encode(" Hello"), (Ids{15043}));
  EXPECT_EQ(without.decode({1, 15043}), " Hello");
  EXPECT_FALSE(without.adds_space_after(no_token));
}

TEST(Tokenizer, Phi3SpecialTokensSwallowSpaceAfterThem) {
  SHOAL_NEED_DATA("vocabs/phi-3.gguf");
  const Tokenizer tokenizer = load_tokenizer("vocabs/phi-3.gguf");
  const Ids expected = {32010, 15043, 32007, 32001};
  EXPECT_EQ(tokenizer.encode("<|user|>\nHello<|end|>\n<|assistant|>\n", SpecialTokens::parse), expected);
  EXPECT_EQ(tokenizer.encode("<s> Hello", SpecialTokens::parse), (Ids{1, 29871, 15043}));
  EXPECT_TRUE(tokenizer.is_end(32007));
  EXPECT_TRUE(tokenizer.is_end(32000));
}

TEST(Tokenizer, UserDefinedTokensMatchAlways) {
  const Tokenizer tokenizer(tiny_bpe());
  EXPECT_EQ(tokenizer.encode("hi<tool>hi"), (Ids{256, 260, 256}));
  EXPECT_EQ(tokenizer.decode({256, 260, 256}), "hi<tool>hi");
  EXPECT_EQ(tokenizer.encode("<too").size(), 4U);
}

TEST(Tokenizer, LongestSpecialTokenWins) {
  GgufMetadata metadata = tiny_bpe();
  auto& texts =
      std::get<std::vector<std::string>>(std::get<GgufArray>(metadata.entries[2].value.value).values);
  auto& types =
      std::get<std::vector<std::int64_t>>(std::get<GgufArray>(metadata.entries[3].value.value).values);
  texts.insert(texts.end(), {"<tool>s", "ol>sx"});
  types.insert(types.end(), {4, 4});
  const Tokenizer tokenizer(metadata);
  EXPECT_EQ(tokenizer.encode("<tool>sx"), (Ids{261, 'x'}));
  EXPECT_EQ(tokenizer.encode("ool>sx<tool>"), (Ids{'o', 262, 260}));
}

TEST(Tokenizer, TypedControlTokensAreNotReachedByMerges) {
  const Tokenizer tokenizer(tiny_spm());  // has "s>" and "<s", so "<s>" is one merge away
  const Ids ids = tokenizer.encode("<s>");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 0);
  EXPECT_EQ(tokenizer.decode(ids), "<s>");
  GgufMetadata metadata = tiny_bpe();
  set(metadata, "tokenizer.ggml.merges", strings_value({"< |", "<| endoftext|>", "h i"}));
  EXPECT_EQ(Tokenizer(metadata).encode("<|endoftext|>").size(), 13U);
}

TEST(Tokenizer, OneBosAtMost) {
  const Tokenizer spm(tiny_spm());
  EXPECT_TRUE(spm.adds_bos());
  EXPECT_EQ(spm.encode_prompt(""), (Ids{1}));
  EXPECT_EQ(spm.encode_prompt("<s>hi", SpecialTokens::parse), spm.encode_prompt("hi"));
  EXPECT_EQ(spm.encode_prompt("hi").front(), 1);

  const Tokenizer bpe(tiny_bpe());
  EXPECT_FALSE(bpe.adds_bos());
  EXPECT_EQ(bpe.encode_prompt("hi"), (Ids{256}));
  EXPECT_TRUE(bpe.encode_prompt("").empty());

  GgufMetadata metadata = tiny_bpe();
  set(metadata, "tokenizer.ggml.pre", string_value("llama-bpe"));
  EXPECT_TRUE(Tokenizer(metadata).adds_bos());
  set(metadata, "tokenizer.ggml.add_bos_token", boolean_value(true));
  set(metadata, "tokenizer.ggml.add_eos_token", boolean_value(true));
  const Tokenizer both(metadata);
  EXPECT_EQ(both.encode_prompt("hi"), (Ids{257, 256, 259}));
  EXPECT_EQ(both.encode_prompt("<|endoftext|>hi<|im_end|>", SpecialTokens::parse), (Ids{257, 256, 259}));
  erase(metadata, "tokenizer.ggml.bos_token_id");
  EXPECT_THROW(Tokenizer{metadata}, Error);
}

TEST(Tokenizer, OldSentencePieceFilesHaveTheUsualIds) {
  GgufMetadata metadata = tiny_spm();
  for (const char* key : {"bos", "eos", "unknown"})
    erase(metadata, std::string("tokenizer.ggml.") + key + "_token_id");
  const Tokenizer tokenizer(metadata);
  EXPECT_EQ(tokenizer.bos(), 1);
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_TRUE(tokenizer.adds_bos());
}

TEST(Tokenizer, ExtraWhitespaceIsRemovedWhereTheFileSaysSo) {
  GgufMetadata metadata = tiny_spm();
  const Ids spaced = Tokenizer(metadata).encode("hi hi");
  set(metadata, "tokenizer.ggml.remove_extra_whitespaces", boolean_value(true));
  EXPECT_EQ(Tokenizer(metadata).encode("  hi   hi "), spaced);
  EXPECT_TRUE(Tokenizer(metadata).encode("   ").empty());
}

TEST(Tokenizer, EndTokens) {
  GgufMetadata metadata = tiny_bpe();
  const Tokenizer tokenizer(metadata);
  EXPECT_TRUE(tokenizer.is_end(259));
  EXPECT_TRUE(tokenizer.is_end(257));  // <|endoftext|> by its spelling
  EXPECT_FALSE(tokenizer.is_end(258));
  EXPECT_FALSE(tokenizer.is_end(no_token));
  EXPECT_FALSE(tokenizer.is_end(100000));
  set(metadata, "tokenizer.ggml.eot_token_id", integer_value(258));
  EXPECT_TRUE(Tokenizer(metadata).is_end(258));
}

TEST(Tokenizer, TurnMarkersLabelledAsTextAreControlTokens) {
  GgufMetadata metadata = tiny_bpe();
  std::vector<std::int64_t> types(261, 1);
  types[259] = 4;
  set(metadata, "tokenizer.ggml.token_type", integers_value(types));
  const Tokenizer tokenizer(metadata);
  EXPECT_TRUE(tokenizer.is_control(259));
  EXPECT_NE(tokenizer.warning().find("<|im_end|>"), std::string::npos);
  const Ids ids = tokenizer.encode("<|im_end|>");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 259), 0);
}

TEST(Tokenizer, AbsentPreTokenizerIsGuessedAloud) {
  GgufMetadata metadata = tiny_bpe();
  EXPECT_EQ(Tokenizer(metadata).warning(), "");
  erase(metadata, "tokenizer.ggml.pre");
  const Tokenizer tokenizer(metadata);
  EXPECT_EQ(tokenizer.pre(), "default");
  EXPECT_NE(tokenizer.warning().find("tokenizer.ggml.pre is missing"), std::string::npos);
}

TEST(Tokenizer, MergesMayNamePiecesThatAreNoTokens) {
  GgufMetadata metadata = tiny_bpe();
  // "xh" and "xhi" are no tokens: a step on the way ends as bytes, not as a lost text.
  set(metadata, "tokenizer.ggml.merges", strings_value({"x h", "xh i", "h i"}));
  EXPECT_EQ(Tokenizer(metadata).encode("xhi"), (Ids{'x', 'h', 'i'}));
  EXPECT_EQ(Tokenizer(metadata).encode("hi"), (Ids{256}));
}

void expect_refused(const GgufMetadata& metadata, std::string_view part, ErrorCode code = ErrorCode::format) {
  try {
    Tokenizer{metadata};
    FAIL() << "accepted: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(metadata.source), std::string::npos) << error.what();
  }
}

TEST(Tokenizer, MalformedVocabulariesAreRefused) {
  const auto refused = [](GgufMetadata metadata, std::string_view key, GgufValue value, std::string_view part,
                          ErrorCode code = ErrorCode::format) {
    set(metadata, key, std::move(value));
    expect_refused(metadata, part, code);
  };
  const GgufMetadata bpe = tiny_bpe(), spm = tiny_spm();
  for (const char* key : {"bos", "eos", "unknown", "padding", "eot", "eom"}) {
    const std::string full = std::string("tokenizer.ggml.") + key + "_token_id";
    refused(bpe, full, integer_value(261), full);
    refused(bpe, full, integer_value(-1), full);
    refused(bpe, full, integer_value(std::int64_t{1} << 40), full);
  }
  refused(bpe, "tokenizer.ggml.token_type", integers_value({1, 2}), "token_type has 2 entries");
  refused(bpe, "tokenizer.ggml.token_type", integers_value(std::vector<std::int64_t>(261, 7)),
          "token_type[0] is 7");
  refused(bpe, "tokenizer.ggml.tokens", strings_value({}), "tokens is empty");
  refused(bpe, "tokenizer.ggml.merges", strings_value({"h i", "hi"}), "merges[1]");
  refused(bpe, "tokenizer.ggml.merges", strings_value({"h "}), "merges[0]");
  refused(bpe, "tokenizer.ggml.merges", strings_value({""}), "merges[0]");
  refused(bpe, "tokenizer.ggml.model", string_value("bert"), "'bert'", ErrorCode::unsupported);
  refused(bpe, "tokenizer.ggml.pre", string_value("mystery"), "'mystery'", ErrorCode::unsupported);
  refused(spm, "tokenizer.ggml.scores", reals_value({1.0}), "scores has 1 entries");
  std::vector<double> scores(270, 0.0);
  scores[5] = std::numeric_limits<double>::quiet_NaN();
  refused(spm, "tokenizer.ggml.scores", reals_value(scores), "scores[5]");
  std::vector<std::int64_t> types(270, 1);
  types[1] = 6;
  refused(spm, "tokenizer.ggml.token_type", integers_value(types), "'<s>'");
  GgufMetadata without = bpe;
  erase(without, "tokenizer.ggml.merges");
  expect_refused(without, "tokenizer.ggml.merges");
}

TEST(Tokenizer, IdsOutsideTheVocabularyAreRefused) {
  const Tokenizer tokenizer(tiny_bpe());
  EXPECT_THROW(tokenizer.piece(261), Error);
  EXPECT_THROW(tokenizer.piece(-1), Error);
  EXPECT_THROW(tokenizer.decode({256, 1000}), Error);
}

TEST(StreamDecoder, RandomTokensGiveWholeCharacters) {
  const Tokenizer tokenizer(tiny_bpe());
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    // Characters of one to four bytes, byte by byte.
    std::string text;
    for (int i = 0; i < 20; ++i) {
      constexpr std::string_view characters[] = {"a", "\xC3\xA9", "\xE6\x88\x91", "\xF0\x9F\xA6\x99"};
      text += characters[random() % 4];
    }
    StreamDecoder stream(tokenizer);
    std::string shown;
    for (const char byte : text) {
      const std::string more = stream.push(static_cast<unsigned char>(byte));
      shown += more;
      ASSERT_TRUE(shown.size() == text.size() ||
                  (static_cast<unsigned char>(text[shown.size()]) & 0xC0) != 0x80);
    }
    EXPECT_EQ(shown, text);
    EXPECT_EQ(stream.finish(), "");
  }
}

TEST(StreamDecoder, BrokenCharactersAreReplaced) {
  const Tokenizer tokenizer(tiny_bpe());
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push(0xE6), "");
  EXPECT_EQ(stream.push('a'),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(stream.push(0xFF), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDecoder, DropsTheSpaceBeforeTheFirstWordOnly) {
  const Tokenizer tokenizer(tiny_spm());
  const Token word = tokenizer.find("\xE2\x96\x81hi");
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.push(word), "hi");
  EXPECT_EQ(stream.push(word), " hi");
}

TEST(Tokenizer, TinyStories) {
  SHOAL_NEED_DATA("models/stories260K.gguf");
  const Tokenizer tokenizer = load_tokenizer("models/stories260K.gguf");
  EXPECT_EQ(tokenizer.encode_prompt("Once upon a time"), (Ids{1, 403, 407, 261, 378}));
  EXPECT_EQ(tokenizer.decode({1, 403, 407, 261, 378}), "Once upon a time");
}

TEST(Tokenizer, LongTextsTakeLinearTime) {
  SHOAL_NEED_DATA("vocabs/gpt-2.gguf");
#if defined(__SANITIZE_ADDRESS__)
  constexpr std::size_t size = 250'000;
  constexpr double limit = 10;
#else
  constexpr std::size_t size = 1'000'000;
  constexpr double limit = 30;
#endif
  std::string words;
  while (words.size() < size)
    words += "The 42 quick\tbrown foxes, jumped over \xE6\x88\x91\xF0\x9F\xA6\x99!\n";
  std::string specials;
  while (specials.size() < size) specials += "<s[PAD1000<|end";
  const std::string texts[] = {std::string(size, 'a'), std::string(size, ' '), words, specials};
  for (const char* name : {"gpt-2", "deepseek-llm", "refact", "llama-spm", "phi-3"}) {
    const Tokenizer tokenizer = load_tokenizer("vocabs/" + std::string(name) + ".gguf");
    for (int i = 0; i < 4; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const Ids ids = tokenizer.encode(texts[i], SpecialTokens::parse);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      EXPECT_EQ(tokenizer.decode(ids), texts[i]);
      // Quadratic work would take minutes.
      EXPECT_LT(seconds.count(), limit) << name << ", text " << i;
      RecordProperty(std::string(name) + "_" + std::to_string(i), std::to_string(seconds.count()));
    }
  }
}

}  // namespace
}  // namespace shoal::infer
