// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "infer/gguf_support.h"
#include "shoal/infer/describe.h"
#include "shoal/infer/random_model.h"

namespace shoal::infer {
namespace {

using testing::TemporaryFolder;

void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

ModelFile written(const TemporaryFolder& folder, const GgufWriter& writer) {
  writer.write(folder.file("m.gguf"));
  return ModelFile::open(folder.file("m.gguf"));
}

RandomModelOptions quantized() {
  RandomModelOptions options;
  options.format = tensor::Format::q8_0;
  return options;
}

TEST(Describe, TellsShapeFormatsAndKeys) {
  TemporaryFolder folder;
  const std::string text = describe(written(folder, random_model(quantized())));
  expect_contains(text, {"m.gguf", "random", "llama", "Q8_0 (16 tensors", "F32 (5 tensors",
                         "4 of width 16, 2 KV heads", "512 STRING ['<unk>', '<s>', '</s>', '<0x00>', ...]",
                         "1e-05", "blk.1.ffn_down.weight", "[160, 64]", "runnable        yes"});
  EXPECT_EQ(text.find("<0x05>"), std::string::npos) << "long arrays are shortened";
}

TEST(Describe, JsonHoldsTheSame) {
  TemporaryFolder folder;
  const auto json = nlohmann::json::parse(describe_json(written(folder, random_model(quantized()))));
  EXPECT_EQ(json["architecture"], "llama");
  EXPECT_EQ(json["model"]["kv_heads"], 2);
  EXPECT_EQ(json["formats"]["Q8_0"]["tensors"], 16);
  // Two embeddings of 512 x 64, five norms of 64, and per layer 64 x (64 + 32 + 32 + 64) + 3 x 64 x 160.
  EXPECT_EQ(json["parameters"], 2 * 512 * 64 + 5 * 64 + 2 * (64 * 192 + 3 * 64 * 160));
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.tokens"]["length"], 512);
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.add_bos_token"], true);
  EXPECT_EQ(json["tensors"].size(), 21u);
  EXPECT_TRUE(json["unsupported"].is_null());
  EXPECT_EQ(json["tokenizer"]["chat_template"], "none");
}

TEST(Describe, SaysWhyAModelCannotBeRun) {
  TemporaryFolder folder;
  const ModelFile model = written(folder, random_model({}).set("general.architecture", "mamba"));
  expect_contains(describe(model), {"runnable        no: ", "architecture 'mamba' is not supported"});
  const auto json = nlohmann::json::parse(describe_json(model));
  EXPECT_TRUE(json["model"].is_null());
  expect_contains(json["unsupported"], {"mamba"});
}

TEST(Describe, TextsOfTheFileCannotWriteToTheTerminal) {
  TemporaryFolder folder;
  GgufWriter writer = random_model({});
  writer.set("general.name", "a\x1b[31m\nb").set("bad\x1b", "\xff\xfe").set("large", ~std::uint64_t{0});
  writer.set("tokenizer.chat_template", "{% for m in messages %}<|im_start|>");
  const ModelFile model = written(folder, writer);
  const std::string text = describe(model);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  expect_contains(text, {"a\\x1b[31m\\x0ab", "18446744073709551615", "chatml"});
  const auto json = nlohmann::json::parse(describe_json(model));
  EXPECT_EQ(json["metadata"]["large"], ~std::uint64_t{0});
}

TEST(Describe, FilesWithoutAnything) {
  TemporaryFolder folder;
  const ModelFile model = written(folder, GgufWriter());
  expect_contains(describe(model), {"metadata (0 keys)", "tensors (0)", "general.architecture"});
  EXPECT_EQ(nlohmann::json::parse(describe_json(model))["parameters"], 0);
}

}  // namespace
}  // namespace shoal::infer
