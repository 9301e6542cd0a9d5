// SPDX-License-Identifier: Apache-2.0
// Random models must be complete, reproducible, and of sane numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <unordered_map>

#include "infer/gguf_support.h"
#include "shoal/infer/model_config.h"
#include "shoal/infer/random_model.h"

namespace shoal::infer {
namespace {

using tensor::Format;
using testing::expect_error;
using testing::read_bytes;
using testing::TemporaryFolder;

std::vector<float> weights(const ModelFile& model, const std::string& name) {
  const TensorInfo& tensor = model.tensor(name);
  std::vector<std::byte> bytes(tensor.bytes);
  model.read(tensor, 0, bytes);
  std::vector<float> values(static_cast<std::size_t>(tensor.columns() * tensor.rows()));
  // Blocks do not reach over rows, so all rows decode as one.
  tensor::dequantize(tensor.format, bytes.data(), values);
  return values;
}

TEST(RandomModel, SameOptionsSameBytes) {
  RandomModelOptions options;
  const auto bytes = random_model(options).bytes();
  EXPECT_EQ(random_model(options).bytes(), bytes);
  options.seed = 2;
  EXPECT_NE(random_model(options).bytes(), bytes);
}

TEST(RandomModel, WritesOneFileOrSeveralOfTheSameTensors) {
  TemporaryFolder folder;
  RandomModelOptions options;
  const auto one = ModelFile::open(write_random_model(folder.file("one.gguf"), options).front());
  options.files = 4;
  const auto paths = write_random_model(folder.file("four.gguf"), options);
  ASSERT_EQ(paths.size(), 4u);
  const auto four = ModelFile::open(paths[3]);
  ASSERT_EQ(one.tensors().size(), four.tensors().size());
  for (const TensorInfo& tensor : one.tensors())
    EXPECT_EQ(weights(one, tensor.name), weights(four, tensor.name));
}

TEST(RandomModel, WeightsHaveTheSizeThatKeepsActivations) {
  TemporaryFolder folder;
  for (const Format format : tensor::all_formats) {
    SCOPED_TRACE(tensor::traits(format).name);
    RandomModelOptions options;
    options.width = 256;
    options.ffn_width = 512;
    options.format = format;
    const auto model = ModelFile::open(write_random_model(folder.file("m.gguf"), options).front());
    for (const auto& [name, columns] :
         {std::pair{"blk.0.ffn_up.weight", 256.0}, std::pair{"blk.1.ffn_down.weight", 512.0}}) {
      const auto values = weights(model, name);
      double sum = 0;
      double squares = 0;
      for (const float value : values) {
        ASSERT_TRUE(std::isfinite(value));
        sum += value;
        squares += static_cast<double>(value) * value;
      }
      const auto count = static_cast<double>(values.size());
      EXPECT_NEAR(squares / count * columns, 1.0, 0.1);  // the variance is 1 / columns
      EXPECT_NEAR(sum / count * std::sqrt(columns), 0.0, 0.05);
    }
  }
}

TEST(RandomModel, RowsDiffer) {
  TemporaryFolder folder;
  const auto model = ModelFile::open(write_random_model(folder.file("m.gguf")).front());
  const auto values = weights(model, "output.weight");
  std::set<std::vector<float>> rows;
  for (std::size_t row = 0; row < 512; ++row)
    rows.emplace(values.begin() + static_cast<std::ptrdiff_t>(row * 64),
                 values.begin() + static_cast<std::ptrdiff_t>(row * 64 + 64));
  EXPECT_EQ(rows.size(), 512u);
}

TEST(RandomModel, OutputMatrices) {
  TemporaryFolder folder;
  const auto model = [&](OutputMatrix output) {
    RandomModelOptions options;
    options.output = output;
    return ModelFile::open(write_random_model(folder.file("m.gguf"), options).front());
  };
  EXPECT_EQ(model(OutputMatrix::tied).find("output.weight"), nullptr);
  const auto copied = model(OutputMatrix::copy_of_embedding);
  EXPECT_EQ(weights(copied, "output.weight"), weights(copied, "token_embd.weight"));
  const auto own = model(OutputMatrix::own);
  EXPECT_NE(weights(own, "output.weight"), weights(own, "token_embd.weight"));
  EXPECT_EQ(weights(own, "token_embd.weight"), weights(copied, "token_embd.weight"));
}

TEST(RandomModel, MixOfFormats) {
  TemporaryFolder folder;
  RandomModelOptions options;
  options.layers = 8;
  options.width = 256;
  options.ffn_width = 512;
  options.format = Format::q4_k;
  options.output_format = Format::q6_k;
  options.more_bits = true;
  const auto model = ModelFile::open(write_random_model(folder.file("m.gguf"), options).front());
  EXPECT_EQ(model.tensor("output.weight").format, Format::q6_k);
  EXPECT_EQ(model.tensor("blk.0.ffn_up.weight").format, Format::q4_k);
  std::string finer;
  for (int layer = 0; layer < 8; ++layer)
    finer +=
        model.tensor("blk." + std::to_string(layer) + ".ffn_down.weight").format == Format::q6_k ? '6' : '4';
  EXPECT_EQ(finer, "64464466");
}

TEST(RandomModel, EachLongPieceIsTwoOthersJoined) {
  RandomModelOptions options;
  options.vocabulary = 5000;
  const GgufMetadata metadata = testing::parse(random_model(options).bytes()).metadata;
  const auto& tokens = metadata.strings("tokenizer.ggml.tokens");
  const auto types = metadata.integers_or_empty("tokenizer.ggml.token_type");
  const auto scores = metadata.reals_or_empty("tokenizer.ggml.scores");
  ASSERT_EQ(tokens.size(), 5000u);
  ASSERT_EQ(types.size(), 5000u);
  ASSERT_EQ(scores.size(), 5000u);
  EXPECT_EQ(tokens[0x41 + 3], "<0x41>");
  std::unordered_map<std::string, std::size_t> ids;
  for (std::size_t id = 0; id < tokens.size(); ++id)
    EXPECT_TRUE(ids.emplace(tokens[id], id).second) << tokens[id];
  const std::string space = "\xe2\x96\x81";
  for (std::size_t id = 259; id < tokens.size(); ++id) {
    const std::string& text = tokens[id];
    EXPECT_EQ(types[id], 1);
    if (text.size() == 1 || text == space) continue;
    bool reachable = false;
    for (std::size_t cut = 1; cut < text.size(); ++cut)
      reachable = reachable || (ids.contains(text.substr(0, cut)) && ids.contains(text.substr(cut)));
    EXPECT_TRUE(reachable) << text;
  }
}

TEST(RandomModel, ImpossibleShapesAreRefused) {
  const auto refused = [](const std::string& part, auto change) {
    RandomModelOptions options;
    change(options);
    expect_error(ErrorCode::invalid_argument, {part}, [&] { random_model(options); });
  };
  refused("heads", [](auto& o) { o.heads = 5, o.kv_heads = 5; });
  refused("KV heads", [](auto& o) { o.kv_heads = 3; });
  refused("positive", [](auto& o) { o.layers = 0; });
  refused("vocabulary", [](auto& o) { o.vocabulary = 258; });
  refused("even", [](auto& o) { o.head_width = 3; });
  refused("Q4_K", [](auto& o) { o.format = Format::q4_k; });
  expect_error(ErrorCode::invalid_argument, {"'huge'", "tinyllama-1.1b"},
               [] { random_model_preset("huge"); });
}

TEST(RandomModel, PresetHasTheShapeOfItsName) {
  const RandomModelOptions options = random_model_preset("tinyllama-1.1b");
  EXPECT_EQ(options.layers, 22);
  EXPECT_EQ(options.width, 2048);
  EXPECT_EQ(options.ffn_width, 5632);
  EXPECT_EQ(options.heads, 32);
  EXPECT_EQ(options.kv_heads, 4);
  EXPECT_EQ(options.vocabulary, 32000);
}

}  // namespace
}  // namespace shoal::infer
