// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "infer/gguf_support.h"
#include "shoal/infer/gguf_writer.h"
#include "shoal/infer/model_file.h"

namespace shoal::infer {
namespace {

using tensor::Format;
using testing::expect_error;
using testing::parse;
using testing::read_bytes;
using testing::TemporaryFolder;

TEST(GgufWriter, BytesAsTheSpecificationSays) {
  GgufWriter writer;
  writer.set("k", std::uint16_t{0x0102});
  writer.add_tensor("t", {1}, Format::f32, std::vector<std::byte>(4, std::byte{0xaa}));
  const auto bytes = writer.bytes();
  testing::Bytes expected = testing::Bytes::header(1, 1);
  expected.string("k").u32(2).number(std::uint16_t{0x0102}).tensor("t", {1}, 0, 0).pad(32);
  expected.raw("\xaa\xaa\xaa\xaa").pad(32);
  EXPECT_EQ(bytes, expected.data());
}

TEST(GgufWriter, FileAndMemoryAreTheSame) {
  TemporaryFolder folder;
  GgufWriter writer;
  writer.set("k", "v").add_tensor("t", {33}, Format::f32, std::vector<float>(33, 1.0f));
  writer.write(folder.file("m.gguf"));
  EXPECT_EQ(read_bytes(folder.file("m.gguf")), writer.bytes());
}

TEST(GgufWriter, KeysAreReplacedAndRemoved) {
  GgufWriter writer;
  writer.set("a", 1.0f).set("b", "x").set("a", std::uint32_t{2}).set("c", true).remove("b").remove("never");
  const GgufMetadata metadata = parse(writer.bytes()).metadata;
  ASSERT_EQ(metadata.entries.size(), 2u);
  EXPECT_EQ(metadata.entries[0].key, "a");
  EXPECT_EQ(metadata.integer("a"), 2);
}

TEST(GgufWriter, StreamsWholeRowsInOrder) {
  // Three pieces: rows of 400,000 bytes, of which two fit in a piece.
  constexpr std::int64_t columns = 100'000;
  constexpr std::uint64_t row = columns * sizeof(float);
  std::vector<std::uint64_t> begins;
  GgufWriter writer;
  writer.add_tensor("t", {columns, 5}, Format::f32, [&](std::uint64_t begin, std::span<std::byte> out) {
    EXPECT_EQ(out.size() % row, 0u);
    begins.push_back(begin);
    for (std::size_t r = 0; r < out.size() / row; ++r)
      std::ranges::fill(out.subspan(r * row, row), static_cast<std::byte>(begin / row + r));
  });
  const auto bytes = writer.bytes();
  EXPECT_EQ(begins, (std::vector<std::uint64_t>{0, 2 * row, 4 * row}));
  const GgufHeader header = parse(bytes);
  for (std::uint64_t r = 0; r < 5; ++r)
    EXPECT_EQ(bytes[header.data_offset + r * row + row - 1], static_cast<std::byte>(r));
}

TEST(GgufWriter, SplitHoldsEveryTensorOnce) {
  TemporaryFolder folder;
  GgufWriter writer;
  writer.set("k", "v");
  for (const char* name : {"a", "b"}) writer.add_tensor(name, {1}, Format::f32, std::vector<float>{1.0f});
  // More parts than tensors: the first is empty of them.
  const auto paths = writer.write_split(folder.file("m.gguf"), 3);
  ASSERT_EQ(paths.size(), 3u);
  const ModelFile model = ModelFile::open(paths[2]);
  EXPECT_EQ(model.tensors().size(), 2u);
  EXPECT_EQ(model.metadata().string("k"), "v");
  EXPECT_EQ(model.metadata().integer("split.tensors.count"), 2);
  EXPECT_EQ(parse(read_bytes(paths[1])).metadata.integer("split.no"), 1);
}

TEST(GgufWriter, MisuseIsRefused) {
  GgufWriter writer;
  writer.add_tensor("t", {32}, Format::q4_0, std::vector<float>(32, 1.0f));
  expect_error(ErrorCode::invalid_argument, {"'t'", "twice"},
               [&] { writer.add_tensor("t", {1}, Format::f32, std::vector<float>{1.0f}); });
  expect_error(ErrorCode::invalid_argument, {"'u'", "[33]", "Q4_0"},
               [&] { writer.add_tensor("u", {33}, Format::q4_0, std::vector<float>(33)); });
  expect_error(ErrorCode::invalid_argument, {"'u'", "impossible"}, [&] {
    writer.add_tensor("u", {std::int64_t{1} << 40, std::int64_t{1} << 40}, Format::f32, GgufWriter::Fill());
  });
  expect_error(ErrorCode::invalid_argument, {"'u'", "3 values", "[4]"},
               [&] { writer.add_tensor("u", {4}, Format::f32, std::vector<float>(3)); });
  expect_error(ErrorCode::invalid_argument, {"'u'", "3 bytes"},
               [&] { writer.add_tensor("u", {4}, Format::f32, std::vector<std::byte>(3)); });
  expect_error(ErrorCode::invalid_argument, {"13", "power of two"}, [&] { writer.set_alignment(13); });
  expect_error(ErrorCode::io, {"absent/m.gguf", "No such file"}, [&] { writer.write("absent/m.gguf"); });
  expect_error(ErrorCode::invalid_argument, {"m.bin"}, [&] { writer.write_split("m.bin", 2); });
}

TEST(GgufWriter, FullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "/dev/full is not there";
  GgufWriter writer;
  writer.add_tensor("t", {1 << 20}, Format::f32, std::vector<float>(1 << 20));
  expect_error(ErrorCode::io, {"/dev/full", "No space"}, [&] { writer.write("/dev/full"); });
}

}  // namespace
}  // namespace shoal::infer
