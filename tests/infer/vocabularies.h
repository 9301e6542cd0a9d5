// SPDX-License-Identifier: Apache-2.0
// Vocabularies for the tokenizer tests: reference files where they are there, and made-up ones.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shoal/infer/model_file.h"
#include "shoal/infer/tokenizer.h"

namespace shoal::infer::testing {

inline std::string data_path(std::string_view name) {
  return std::string(SHOAL_TEST_DATA) + "/" + std::string(name);
}

#define SHOAL_NEED_DATA(name)                                                    \
  if (!std::filesystem::exists(::shoal::infer::testing::data_path(name))) {      \
    GTEST_SKIP() << ::shoal::infer::testing::data_path(name) << " is not there"; \
  }                                                                              \
  static_cast<void>(0)

inline Tokenizer load_tokenizer(std::string_view name) {
  return Tokenizer(ModelFile::open(data_path(name)).metadata());
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Vector {
  std::string text;
  std::vector<Token> ids;
};

/// The reference texts and ids of a vocabulary; a text may begin and end with line ends.
inline std::vector<Vector> read_vectors(std::string_view name) {
  const std::string texts = read_file(data_path(std::string(name) + ".gguf.inp"));
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::ifstream ids(data_path(std::string(name) + ".gguf.out"));
  std::vector<Vector> vectors;
  std::size_t at = 0;
  for (std::size_t end; (end = texts.find(separator, at)) != std::string::npos; at = end + separator.size()) {
    Vector vector{texts.substr(at, end - at), {}};
    std::string line;
    std::getline(ids, line);
    std::istringstream numbers(line);
    for (Token id; numbers >> id;) vector.ids.push_back(id);
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

inline GgufValue integer_value(std::int64_t value) { return {GgufType::int64, value}; }
inline GgufValue boolean_value(bool value) { return {GgufType::boolean, std::int64_t{value}}; }
inline GgufValue string_value(std::string value) { return {GgufType::string, std::move(value)}; }
inline GgufValue strings_value(std::vector<std::string> values) {
  return {GgufType::array, GgufArray{GgufType::string, std::move(values)}};
}
inline GgufValue integers_value(std::vector<std::int64_t> values) {
  return {GgufType::array, GgufArray{GgufType::int32, std::move(values)}};
}
inline GgufValue reals_value(std::vector<double> values) {
  return {GgufType::array, GgufArray{GgufType::float32, std::move(values)}};
}

/// Sets or replaces a key.
inline void set(GgufMetadata& metadata, std::string_view key, GgufValue value) {
  for (GgufEntry& entry : metadata.entries) {
    if (entry.key == key) {
      entry.value = std::move(value);
      return;
    }
  }
  metadata.entries.push_back({std::string(key), std::move(value)});
}

inline void erase(GgufMetadata& metadata, std::string_view key) {
  std::erase_if(metadata.entries, [&](const GgufEntry& entry) { return entry.key == key; });
}

/// Collects tokens with their kinds (1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte) and scores.
struct TinyVocabulary {
  std::vector<std::string> texts;
  std::vector<std::int64_t> types;
  std::vector<double> scores;

  void add(std::string text, std::int64_t type = 1, double score = 0) {
    texts.push_back(std::move(text));
    types.push_back(type);
    scores.push_back(score);
  }
};

/// Llama-like: 0 <unk>, 1 <s>, 2 </s>, 3 + b the bytes, then spaces and a few words.
inline GgufMetadata tiny_spm(bool with_bytes = true) {
  TinyVocabulary v;
  v.add("<unk>", 2);
  v.add("<s>", 3);
  v.add("</s>", 3);
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (unsigned b = 0; with_bytes && b < 256; ++b) {
    v.add(std::string("<0x") + digits[b / 16] + digits[b % 16] + ">", 6);
  }
  double score = -1;
  for (const char* text :
       {"\xE2\x96\x81", "h", "i", "hi", "\xE2\x96\x81hi", "<", "s", ">", "/", "s>", "<s"}) {
    v.add(text, 1, score--);
  }
  GgufMetadata metadata;
  metadata.source = "tiny-spm";
  set(metadata, "tokenizer.ggml.model", string_value("llama"));
  set(metadata, "tokenizer.ggml.tokens", strings_value(v.texts));
  set(metadata, "tokenizer.ggml.token_type", integers_value(v.types));
  set(metadata, "tokenizer.ggml.scores", reals_value(v.scores));
  set(metadata, "tokenizer.ggml.bos_token_id", integer_value(1));
  set(metadata, "tokenizer.ggml.eos_token_id", integer_value(2));
  set(metadata, "tokenizer.ggml.unknown_token_id", integer_value(0));
  return metadata;
}

/// The spelling of one byte in the alphabet of byte-level vocabularies, written here independently of
/// the library: bytes without a printable Latin-1 form count up from U+0100.
inline std::string byte_spelling(unsigned byte) {
  unsigned character = byte;
  unsigned shifted = 0;
  for (unsigned b = 0; b <= byte; ++b) {
    const bool printable = (b > 32 && b < 127) || (b > 160 && b != 173);
    if (!printable) character = 256 + shifted++;
    if (b == byte && printable) character = byte;
  }
  if (character < 128) return std::string(1, static_cast<char>(character));
  return {static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 63))};
}

/// Byte-level: id b is byte b, then words, then ChatML's control tokens.
/// 256 "hi", 257 <|endoftext|>, 258 <|im_start|>, 259 <|im_end|>, 260 (user-defined) <tool>.
inline GgufMetadata tiny_bpe() {
  TinyVocabulary v;
  for (unsigned b = 0; b < 256; ++b) v.add(byte_spelling(b));
  v.add("hi");
  v.add("<|endoftext|>", 3);
  v.add("<|im_start|>", 3);
  v.add("<|im_end|>", 3);
  v.add("<tool>", 4);
  GgufMetadata metadata;
  metadata.source = "tiny-bpe";
  set(metadata, "tokenizer.ggml.model", string_value("gpt2"));
  set(metadata, "tokenizer.ggml.pre", string_value("gpt-2"));
  set(metadata, "tokenizer.ggml.tokens", strings_value(v.texts));
  set(metadata, "tokenizer.ggml.token_type", integers_value(v.types));
  set(metadata, "tokenizer.ggml.merges", strings_value({"h i"}));
  set(metadata, "tokenizer.ggml.bos_token_id", integer_value(257));
  set(metadata, "tokenizer.ggml.eos_token_id", integer_value(259));
  return metadata;
}

}  // namespace shoal::infer::testing
