// SPDX-License-Identifier: Apache-2.0
// The GGUF parser on bytes: what it accepts, and that each kind of damage is refused and named.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "infer/gguf_support.h"
#include "shoal/infer/gguf_writer.h"
#include "shoal/infer/random_model.h"

namespace shoal::infer {
namespace {

using tensor::Format;
using testing::Bytes;
using testing::expect_error;
using testing::expect_refused;
using testing::parse;

constexpr std::uint64_t all_ones = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t type_f32 = 0;
constexpr std::uint32_t type_q4_0 = 2;
constexpr std::uint32_t type_uint32 = 4;
constexpr std::uint32_t type_string = 8;
constexpr std::uint32_t type_array = 9;

/// Two tensors of 32 bytes each, so that the file ends with the last of them.
GgufWriter small_file() {
  GgufWriter writer;
  writer.set("general.architecture", "llama").set("general.name", "small");
  writer.set("list", std::vector<std::string>{"a", "", "ccc"});
  writer.add_tensor("one", {4, 2}, Format::f32, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  writer.add_tensor("two", {8}, Format::f32, std::vector<float>{7, 6, 5, 4, 3, 2, 1, 0});
  return writer;
}

std::vector<float> floats(std::span<const std::byte> bytes, const TensorInfo& tensor) {
  std::vector<float> values(tensor.bytes / sizeof(float));
  std::memcpy(values.data(), bytes.data() + tensor.offset, tensor.bytes);
  return values;
}

TEST(Gguf, ReadsWhatWasWritten) {
  const auto bytes = small_file().bytes();
  const GgufHeader header = parse(bytes);
  EXPECT_EQ(header.version, 3u);
  EXPECT_EQ(header.alignment, 32u);
  EXPECT_EQ(header.metadata.string("general.name"), "small");
  EXPECT_EQ(header.metadata.strings("list"), (std::vector<std::string>{"a", "", "ccc"}));
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].name, "one");
  EXPECT_EQ(header.tensors[0].columns(), 4);
  EXPECT_EQ(header.tensors[0].rows(), 2);
  EXPECT_EQ(header.tensors[0].offset, header.data_offset);
  EXPECT_EQ(header.data_offset % 32, 0u);
  EXPECT_EQ(floats(bytes, header.tensors[1]), (std::vector<float>{7, 6, 5, 4, 3, 2, 1, 0}));
}

TEST(Gguf, BadMagicShowsTheBytes) {
  for (const auto& [text, hint] : std::vector<std::pair<std::string, std::string>>{
           {"FUGG....", "46 55 47 47"},
           {"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"},
           {"<!DOCTYPE html><html>", "web page"}})
    expect_refused(Bytes().raw(text).zeros(64), ErrorCode::format, {"file.gguf", "not a GGUF file", hint});
  expect_refused(Bytes().number(0x46554746u).zeros(64), ErrorCode::format, {"46 47 55 46"});
  expect_refused(Bytes(), ErrorCode::format, {"file.gguf", "empty"});
}

TEST(Gguf, VersionsTwoAndThreeAreTheSame) {
  const auto three = small_file().bytes();
  const auto two = small_file().set_version(2).bytes();
  const GgufHeader a = parse(two);
  const GgufHeader b = parse(three);
  EXPECT_EQ(a.version, 2u);
  for (std::size_t t = 0; t < 2; ++t) EXPECT_EQ(floats(two, a.tensors[t]), floats(three, b.tensors[t]));
  for (const std::uint32_t version : {0u, 1u, 4u, 77u})
    expect_error(ErrorCode::unsupported, {"file.gguf", "version " + std::to_string(version), "2 and 3"},
                 [&] { parse(small_file().set_version(version).bytes()); });
}

TEST(Gguf, BigEndianIsCalledSo) {
  for (const std::uint32_t version : {2u, 3u}) {
    Bytes bytes;
    bytes.raw("GGUF")
        .u32(__builtin_bswap32(version))
        .u64(__builtin_bswap64(1))
        .u64(__builtin_bswap64(1))
        .zeros(64);
    expect_refused(bytes, ErrorCode::unsupported, {"byte order differs", "big-endian"});
  }
}

TEST(Gguf, EveryPrefixIsRefused) {
  const auto bytes = small_file().bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    expect_error(ErrorCode::format, {"file.gguf"}, [&] { parse(std::span(bytes).first(size)); });
  }
  EXPECT_NO_THROW(parse(bytes));
}

TEST(Gguf, TruncatedDataNamesTheTensor) {
  const auto bytes = small_file().bytes();
  expect_error(ErrorCode::format, {"file.gguf", "truncated", "'two'"},
               [&] { parse(std::span(bytes).first(bytes.size() - 1)); });
}

TEST(Gguf, AsksForMoreBytesOnlyWhileTheHeaderIsIncomplete) {
  const auto bytes = small_file().bytes();
  const std::uint64_t header = parse(bytes).header_bytes;
  for (std::size_t have = 0; have < bytes.size(); ++have) {
    SCOPED_TRACE(have);
    const auto part = [&] { return parse_gguf(std::span(bytes).first(have), bytes.size(), "file.gguf"); };
    if (have < header)
      EXPECT_THROW(part(), GgufNeedsMoreBytes);
    else
      EXPECT_EQ(part().tensors.size(), 2u);
  }
}

TEST(Gguf, HugeCountsAreRefused) {
  for (const std::uint64_t huge : {all_ones, std::uint64_t{1} << 63, std::uint64_t{1} << 30}) {
    SCOPED_TRACE(huge);
    expect_refused(Bytes::header(huge, 0).zeros(136), ErrorCode::format,
                   {"number of tensors", std::to_string(huge)});
    expect_refused(Bytes::header(0, huge).zeros(136), ErrorCode::format,
                   {"number of keys", std::to_string(huge)});
    expect_refused(Bytes::header(0, 1).u64(huge).zeros(128), ErrorCode::format, {"name of key 0"});
    expect_refused(Bytes::header(0, 1).string("k").u32(type_string).u64(huge).zeros(100), ErrorCode::format,
                   {"key 'k'", std::to_string(huge)});
    expect_refused(Bytes::header(0, 1).string("k").u32(type_array).u32(type_uint32).u64(huge).zeros(100),
                   ErrorCode::format, {"length of key 'k'", std::to_string(huge)});
    expect_refused(
        Bytes::header(0, 1).string("k").u32(type_array).u32(type_string).u64(2).u64(huge).zeros(100),
        ErrorCode::format, {"key 'k'", std::to_string(huge)});
    expect_refused(Bytes::header(1, 0).u64(huge).zeros(100), ErrorCode::format, {"name of tensor 0"});
  }
}

TEST(Gguf, OverflowingShapesAreRefused) {
  const std::uint64_t big = std::uint64_t{1} << 32;
  // 2^64 elements wrap to 0 in 64 bits, 2^62 floats to 0 bytes.
  for (const auto& shape :
       std::vector<std::vector<std::uint64_t>>{{big, big},
                                               {big, big, big, big},
                                               {std::uint64_t{1} << 31, std::uint64_t{1} << 31},
                                               {std::uint64_t{1} << 62}})
    expect_refused(Bytes::header(1, 0).tensor("t", shape, type_f32, 0).pad(32).zeros(64), ErrorCode::format,
                   {"tensor 't'", "impossible shape"});
  for (const std::uint64_t size : {std::uint64_t{1} << 63, all_ones})
    expect_refused(Bytes::header(1, 0).tensor("t", {size}, type_f32, 0).pad(32).zeros(64), ErrorCode::format,
                   {"tensor 't'", "impossible size", std::to_string(size)});
}

TEST(Gguf, SumsThatWrapAreRefused) {
  // Each tensor's bytes fit in 63 bits; the second one's end wraps around 2^64.
  const std::uint64_t elements = 0x1ffffffffffffff0u;
  Bytes bytes = Bytes::header(2, 0);
  bytes.tensor("a", {elements}, type_f32, 0)
      .tensor("b", {elements}, type_f32, 0x7fffffffffffffc0u)
      .pad(32)
      .zeros(64);
  expect_refused(bytes, ErrorCode::format, {"tensor 'a'", "truncated"});
  const std::uint64_t near_end = all_ones - 31;
  expect_refused(Bytes::header(1, 0).tensor("c", {8}, type_f32, near_end).pad(32).zeros(64),
                 ErrorCode::format, {"tensor 'c'"});
}

TEST(Gguf, AtMostFourDimensions) {
  for (const std::uint32_t dimensions : {5u, 9u, 0xffffffffu}) {
    Bytes bytes = Bytes::header(1, 0);
    bytes.string("t").u32(dimensions).zeros(128);
    expect_refused(bytes, ErrorCode::format, {"tensor 't'", std::to_string(dimensions) + " dimensions"});
  }
  Bytes four = Bytes::header(1, 0);
  four.tensor("t", {2, 2, 2, 2}, type_f32, 0).pad(32).zeros(64);
  EXPECT_EQ(parse(four.data()).tensors[0].rows(), 8);
  Bytes scalar = Bytes::header(1, 0);
  scalar.tensor("t", {}, type_f32, 0).pad(32).zeros(4);
  EXPECT_EQ(parse(scalar.data()).tensors[0].bytes, 4u);
}

TEST(Gguf, Alignments) {
  for (const std::uint32_t alignment : {1u, 8u, 32u, 64u, 4096u}) {
    SCOPED_TRACE(alignment);
    const auto bytes = small_file().set_alignment(alignment).bytes();
    const GgufHeader header = parse(bytes);
    EXPECT_EQ(header.alignment, alignment);
    EXPECT_EQ(header.data_offset % alignment, 0u);
    EXPECT_EQ(floats(bytes, header.tensors[0]), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(floats(bytes, header.tensors[1]), (std::vector<float>{7, 6, 5, 4, 3, 2, 1, 0}));
  }
  for (const std::uint32_t alignment : {0u, 13u, 24u, 1u << 21, 1u << 30})
    expect_refused(Bytes::header(0, 1).u32_key("general.alignment", alignment).zeros(64), ErrorCode::format,
                   {"general.alignment", std::to_string(alignment), "power of two"});
  expect_error(ErrorCode::format, {"general.alignment", "INT32", "UINT32"},
               [&] { parse(small_file().set("general.alignment", std::int32_t{32}).bytes()); });
}

TEST(Gguf, OffsetsAreChecked) {
  const auto file = [](std::uint64_t a, std::uint64_t b) {
    Bytes bytes = Bytes::header(2, 0);
    return bytes.tensor("a", {16}, type_f32, a).tensor("b", {16}, type_f32, b).pad(32).zeros(160);
  };
  expect_refused(file(0, 68), ErrorCode::format, {"tensor 'b'", "68", "alignment 32"});
  expect_refused(file(0, 32), ErrorCode::format, {"'a'", "'b'", "overlap"});
  expect_refused(file(64, 64), ErrorCode::format, {"overlap"});
  expect_refused(file(0, 128), ErrorCode::format, {"'b'", "truncated"});
  EXPECT_NO_THROW(parse(file(64, 0).data()));  // order and gaps are the file's own business
  EXPECT_NO_THROW(parse(file(0, 96).data()));
}

TEST(Gguf, DuplicatesAreNamed) {
  Bytes keys = Bytes::header(0, 2);
  keys.u32_key("general.architecture", 1).u32_key("general.architecture", 2);
  expect_refused(keys, ErrorCode::format, {"'general.architecture'", "twice"});
  Bytes tensors = Bytes::header(2, 0);
  tensors.tensor("token_embd.weight", {8}, type_f32, 0).tensor("token_embd.weight", {8}, type_f32, 32);
  expect_refused(tensors.pad(32).zeros(64), ErrorCode::format, {"'token_embd.weight'", "twice"});
}

TEST(Gguf, EmptyTensorsAreAcceptedWhateverTheyAre) {
  Bytes bytes = Bytes::header(4, 0);
  bytes.tensor("marker", {0}, type_f32, 0).tensor("odd", {33, 0}, type_q4_0, 7);
  bytes.tensor("wide", {0, std::uint64_t{1} << 62, std::uint64_t{1} << 62}, type_f32, all_ones);
  bytes.tensor("strange", {4, 0}, 16, 0);
  const GgufHeader header = parse(bytes.data());
  ASSERT_EQ(header.tensors.size(), 4u);
  for (const TensorInfo& tensor : header.tensors) {
    EXPECT_EQ(tensor.bytes, 0u);
    EXPECT_EQ(tensor.rows(), 0);
  }
}

TEST(Gguf, UnsupportedTensorTypeIsNamed) {
  expect_refused(Bytes::header(1, 0).tensor("blk.0.attn_q.weight", {256}, 16, 0).pad(32).zeros(96),
                 ErrorCode::unsupported, {"'blk.0.attn_q.weight'", "16 (IQ2_XXS)", "Q4_0", "Q6_K"});
  expect_refused(Bytes::header(1, 0).tensor("t", {256}, 4096, 0).pad(32).zeros(96), ErrorCode::unsupported,
                 {"'t'", "4096 (unknown)"});
}

TEST(Gguf, RowsAreWholeBlocks) {
  expect_refused(Bytes::header(1, 0).tensor("t", {33}, type_q4_0, 0).pad(32).zeros(96), ErrorCode::format,
                 {"'t'", "33", "Q4_0"});
}

TEST(Gguf, ValuesThatNoTypeHas) {
  expect_refused(Bytes::header(0, 1).string("k").u32(13).zeros(64), ErrorCode::format,
                 {"'k'", "unknown type 13"});
  expect_refused(Bytes::header(0, 1).string("k").u32(7).raw("\x02").zeros(8), ErrorCode::format,
                 {"'k'", "BOOL of value 2"});
  expect_refused(Bytes::header(0, 1).string("k").u32(type_array).u32(type_array).u64(1).zeros(64),
                 ErrorCode::unsupported, {"'k'", "array of arrays"});
  const std::string long_key(70000, 'x');
  expect_refused(Bytes::header(0, 1).string(long_key).zeros(64), ErrorCode::format,
                 {"name of key 0", "65535"});
}

TEST(Gguf, NamesInMessagesStayOnOneLine) {
  Bytes bytes = Bytes::header(1, 0);
  bytes.tensor("evil\n\x1b[31m" + std::string(500, 'x'), {8}, 16, 0).pad(32).zeros(96);
  expect_refused(bytes, ErrorCode::unsupported, {"evil\\x0a\\x1b[31m", "..."});
}

}  // namespace
}  // namespace shoal::infer
