// SPDX-License-Identifier: Apache-2.0
// Writes the seed corpus of fuzz_gguf into the folder given: small valid files that together hold every
// value type, format and alignment.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "shoal/infer/gguf_writer.h"

namespace {

using shoal::infer::GgufWriter;
using shoal::tensor::Format;

GgufWriter keys() {
  GgufWriter writer;
  writer.set("u8", std::uint8_t{1}).set("i8", std::int8_t{-1}).set("u16", std::uint16_t{2});
  writer.set("i16", std::int16_t{-2}).set("u32", std::uint32_t{3}).set("i32", std::int32_t{-3});
  writer.set("f32", 1.0f)
      .set("b", true)
      .set("s", "text")
      .set("u64", std::uint64_t{4})
      .set("i64", std::int64_t{-4});
  writer.set("f64", 2.0).set("as", std::vector<std::string>{"a", "bc"}).set("af", std::vector<float>{0, 1});
  writer.set("ai", std::vector<std::int32_t>{1, 2}).set("ab", std::vector<bool>{true, false});
  return writer;
}

GgufWriter tensors() {
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  for (const Format format : shoal::tensor::all_formats) {
    const auto& traits = shoal::tensor::traits(format);
    writer.add_tensor(std::string(traits.name), {traits.block_elements}, format,
                      std::vector<std::byte>(static_cast<std::size_t>(traits.block_bytes)));
  }
  writer.add_tensor("cube", {2, 1, 2, 1}, Format::f32, std::vector<std::byte>(16));
  writer.add_tensor("scalar", {}, Format::f32, std::vector<std::byte>(4));
  writer.add_tensor("empty", {4, 0}, Format::f32, std::vector<std::byte>());
  return writer;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_gguf_seeds FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  try {
    GgufWriter().write(folder + "/nothing.gguf");
    keys().write(folder + "/keys.gguf");
    keys().set_version(2).write(folder + "/version2.gguf");
    tensors().write(folder + "/tensors.gguf");
    tensors().set_alignment(1).write(folder + "/aligned1.gguf");
    tensors().set_alignment(64).write(folder + "/aligned64.gguf");
    keys()
        .set("split.no", std::uint16_t{0})
        .set("split.count", std::uint16_t{2})
        .write(folder + "/split.gguf");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_gguf_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
