// SPDX-License-Identifier: Apache-2.0
// Typed lookups: each value type in and out of a file, and what is said about a wrong one.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "infer/gguf_support.h"
#include "shoal/infer/gguf_writer.h"

namespace shoal::infer {
namespace {

using testing::expect_error;
using testing::parse;

template <class T>
void expect_integer_limits(const std::string& key, GgufType type) {
  const T low = std::numeric_limits<T>::min();
  const T high = std::numeric_limits<T>::max();
  GgufWriter writer;
  writer.set(key, high).set("low", low).set("both", std::vector<T>{low, high});
  const GgufMetadata metadata = parse(writer.bytes()).metadata;
  EXPECT_EQ(metadata.find(key)->type, type);
  EXPECT_EQ(metadata.integer(key), static_cast<std::int64_t>(high));
  EXPECT_EQ(metadata.integer("low"), static_cast<std::int64_t>(low));
  EXPECT_EQ(metadata.array("both")->type, type);
  EXPECT_EQ(metadata.integers_or_empty("both"),
            (std::vector<std::int64_t>{static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)}));
}

TEST(GgufMetadata, IntegersOfEveryWidth) {
  expect_integer_limits<std::uint8_t>("uint8", GgufType::uint8);
  expect_integer_limits<std::int8_t>("int8", GgufType::int8);
  expect_integer_limits<std::uint16_t>("uint16", GgufType::uint16);
  expect_integer_limits<std::int16_t>("int16", GgufType::int16);
  expect_integer_limits<std::uint32_t>("uint32", GgufType::uint32);
  expect_integer_limits<std::int32_t>("int32", GgufType::int32);
  expect_integer_limits<std::int64_t>("int64", GgufType::int64);
}

TEST(GgufMetadata, UnsignedValuesBeyondTheSignedRange) {
  const std::uint64_t large = std::uint64_t{1} << 63;
  GgufWriter writer;
  writer.set("large", large)
      .set("small", std::uint64_t{7})
      .set("array", std::vector<std::uint64_t>{1, large});
  const GgufMetadata metadata = parse(writer.bytes()).metadata;
  EXPECT_EQ(metadata.integer("small"), 7);
  EXPECT_EQ(static_cast<std::uint64_t>(std::get<std::int64_t>(metadata.find("large")->value)), large);
  expect_error(ErrorCode::format, {"file.gguf", "'large'", "9223372036854775808"},
               [&] { metadata.integer("large"); });
  expect_error(ErrorCode::format, {"file.gguf", "'array'"}, [&] { metadata.integers_or_empty("array"); });
}

TEST(GgufMetadata, RealsTextsAndBooleans) {
  GgufWriter writer;
  writer.set("f32", 0.1f).set("f64", 0.1).set("text", "a\0b").set("yes", true).set("no", false);
  writer.set("reals", std::vector<float>{1.5f, -2.0f}).set("doubles", std::vector<double>{0.1});
  writer.set("flags", std::vector<bool>{true, false}).set("empty", std::vector<std::string>{});
  const GgufMetadata metadata = parse(writer.bytes()).metadata;
  EXPECT_EQ(metadata.real("f32"), static_cast<double>(0.1f));
  EXPECT_EQ(metadata.real("f64"), 0.1);
  EXPECT_TRUE(metadata.boolean_or("yes", false));
  EXPECT_FALSE(metadata.boolean_or("no", true));
  EXPECT_EQ(metadata.reals_or_empty("reals"), (std::vector<double>{1.5, -2.0}));
  EXPECT_EQ(metadata.reals_or_empty("doubles"), (std::vector<double>{0.1}));
  EXPECT_EQ(metadata.array("flags")->type, GgufType::boolean);
  EXPECT_EQ(metadata.array("flags")->size(), 2u);
  EXPECT_TRUE(metadata.strings("empty").empty());
}

TEST(GgufMetadata, AbsentKeys) {
  const GgufMetadata metadata = parse(GgufWriter().set("there", std::uint32_t{1}).bytes()).metadata;
  EXPECT_TRUE(metadata.has("there"));
  EXPECT_FALSE(metadata.has("absent"));
  EXPECT_EQ(metadata.integer_or("absent", 5), 5);
  EXPECT_EQ(metadata.real_or("absent", 0.5), 0.5);
  EXPECT_TRUE(metadata.boolean_or("absent", true));
  EXPECT_EQ(metadata.string_or("absent", "x"), "x");
  EXPECT_EQ(metadata.array("absent"), nullptr);
  EXPECT_TRUE(metadata.integers_or_empty("absent").empty());
  EXPECT_TRUE(metadata.reals_or_empty("absent").empty());
  expect_error(ErrorCode::format, {"file.gguf", "'absent' is missing"}, [&] { metadata.integer("absent"); });
  expect_error(ErrorCode::format, {"file.gguf", "'absent' is missing"}, [&] { metadata.real("absent"); });
  expect_error(ErrorCode::format, {"file.gguf", "'absent' is missing"}, [&] { metadata.string("absent"); });
  expect_error(ErrorCode::format, {"file.gguf", "'absent' is missing"}, [&] { metadata.strings("absent"); });
}

TEST(GgufMetadata, WrongTypesAreNamed) {
  GgufWriter writer;
  writer.set("text", "4").set("number", std::uint32_t{4}).set("real", 4.0f).set("flag", true);
  writer.set("texts", std::vector<std::string>{"a"});
  const GgufMetadata metadata = parse(writer.bytes()).metadata;
  expect_error(ErrorCode::format, {"'text'", "STRING", "integer"}, [&] { metadata.integer("text"); });
  expect_error(ErrorCode::format, {"'flag'", "BOOL", "integer"}, [&] { metadata.integer_or("flag", 0); });
  expect_error(ErrorCode::format, {"'real'", "FLOAT32", "integer"}, [&] { metadata.integer("real"); });
  expect_error(ErrorCode::format, {"'number'", "UINT32", "floating-point"},
               [&] { metadata.real_or("number", 0); });
  expect_error(ErrorCode::format, {"'number'", "UINT32", "BOOL"},
               [&] { metadata.boolean_or("number", false); });
  expect_error(ErrorCode::format, {"'number'", "UINT32", "STRING"},
               [&] { metadata.string_or("number", ""); });
  expect_error(ErrorCode::format, {"'number'", "UINT32", "ARRAY"}, [&] { metadata.array("number"); });
  expect_error(ErrorCode::format, {"'number'", "UINT32", "ARRAY"},
               [&] { metadata.integers_or_empty("number"); });
  expect_error(ErrorCode::format, {"'texts'", "ARRAY of STRING", "integers"},
               [&] { metadata.integers_or_empty("texts"); });
  expect_error(ErrorCode::format, {"'texts'", "ARRAY of STRING", "floating-point"},
               [&] { metadata.reals_or_empty("texts"); });
}

}  // namespace
}  // namespace shoal::infer
