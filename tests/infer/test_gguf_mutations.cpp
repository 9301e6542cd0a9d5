// SPDX-License-Identifier: Apache-2.0
// Random damage to a model file: the parser and the checks behind it may only throw Error. Deterministic,
// so that what fails once fails again.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "infer/gguf_support.h"
#include "shoal/infer/gguf_writer.h"

namespace shoal::infer {
namespace {

using Random = std::mt19937_64;

GgufWriter victim() {
  GgufWriter writer;
  writer.set("general.architecture", "llama").set("general.alignment", std::uint32_t{32});
  writer.set("llama.block_count", std::uint32_t{1}).set("a", std::int8_t{-1}).set("b", 1.5).set("c", true);
  writer.set("tokens", std::vector<std::string>{"<unk>", "a", "bc"})
      .set("scores", std::vector<float>{0, 1, 2});
  writer.set("types", std::vector<std::int32_t>{1, 2, 3}).set("wide", std::vector<std::uint64_t>{1, 2});
  writer.add_tensor("x.weight", {32, 2}, tensor::Format::q8_0, std::vector<float>(64, 1.0f));
  writer.add_tensor("y.weight", {8}, tensor::Format::f32, std::vector<float>(8, 1.0f));
  writer.add_tensor("marker", {0}, tensor::Format::f32, std::vector<float>{});
  return writer;
}

/// Values at which counts, lengths and sizes change their meaning.
std::uint64_t interesting(Random& random) {
  static constexpr std::uint64_t values[] = {0,
                                             1,
                                             2,
                                             31,
                                             33,
                                             255,
                                             256,
                                             0x7fff,
                                             0x10000,
                                             0x7fffffff,
                                             0x80000000,
                                             0xffffffff,
                                             0x100000000,
                                             0x7fffffffffffffff,
                                             0x8000000000000000,
                                             0xffffffffffffffff};
  return values[random() % std::size(values)];
}

void mutate(std::vector<std::byte>& bytes, Random& random) {
  const std::size_t place = random() % bytes.size();
  switch (random() % 5) {
    case 0: bytes[place] = static_cast<std::byte>(random()); break;
    case 1: bytes[place] ^= static_cast<std::byte>(1u << (random() % 8)); break;
    case 2: {
      const std::uint64_t value = interesting(random);
      const auto raw = std::as_bytes(std::span(&value, 1));
      const std::size_t count = std::min<std::size_t>(random() % 2 == 0 ? 4 : 8, bytes.size() - place);
      std::copy_n(raw.begin(), count, bytes.begin() + static_cast<std::ptrdiff_t>(place));
      break;
    }
    case 3: bytes.resize(place + 1); break;
    default: {
      const std::size_t count = std::min<std::size_t>(1 + random() % 16, bytes.size() - place);
      const std::vector<std::byte> piece(bytes.begin() + static_cast<std::ptrdiff_t>(place),
                                         bytes.begin() + static_cast<std::ptrdiff_t>(place + count));
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size()), piece.begin(),
                   piece.end());
    }
  }
}

/// What a reader of the tensors relies on.
void expect_sound(const GgufHeader& header, std::size_t file_size) {
  for (const TensorInfo& tensor : header.tensors) {
    if (tensor.bytes == 0) continue;
    ASSERT_LE(tensor.bytes, file_size);
    ASSERT_LE(tensor.offset, file_size - tensor.bytes);
    const std::int64_t row = tensor::row_bytes(tensor.format, tensor.columns());
    ASSERT_EQ(tensor.bytes, static_cast<std::uint64_t>(tensor.rows() * row));
  }
}

TEST(GgufMutations, OnlyErrors) {
  const std::vector<std::byte> original = victim().bytes();
  Random random(20240607);
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 40'000; ++i) {
    std::vector<std::byte> bytes = original;
    for (std::uint64_t left = 1 + random() % 4; left > 0; --left) mutate(bytes, random);
    try {
      expect_sound(testing::parse(bytes), bytes.size());
      ++accepted;
    } catch (const Error&) {
      ++refused;
    }
  }
  // Both paths are walked: most damage is in what is checked, some in numbers and texts that are free.
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 10'000);
}

TEST(GgufMutations, DamagedPrefixesAskOrRefuse) {
  const std::vector<std::byte> original = victim().bytes();
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes = original;
    mutate(bytes, random);
    const std::size_t have = random() % (bytes.size() + 1);
    try {
      expect_sound(parse_gguf(std::span(bytes).first(have), bytes.size(), "file.gguf"), bytes.size());
    } catch (const Error&) {
    } catch (const GgufNeedsMoreBytes&) {
      ASSERT_LT(have, bytes.size());
    }
  }
}

}  // namespace
}  // namespace shoal::infer
