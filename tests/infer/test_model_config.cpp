// SPDX-License-Identifier: Apache-2.0
// Hyper-parameters and the set of tensors: what is read, and each kind of model that is refused by name.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "infer/gguf_support.h"
#include "shoal/infer/model_config.h"
#include "shoal/infer/random_model.h"

namespace shoal::infer {
namespace {

using tensor::Format;
using testing::expect_error;
using testing::TemporaryFolder;

/// A tiny model after a change to it.
using Change = std::function<void(GgufWriter&)>;

ModelConfig config_of(const Change& change, const RandomModelOptions& options = {}) {
  TemporaryFolder folder;
  GgufWriter writer = random_model(options);
  change(writer);
  writer.write(folder.file("tiny.gguf"));
  return read_config(ModelFile::open(folder.file("tiny.gguf")));
}

ModelConfig config_of(const RandomModelOptions& options = {}) {
  return config_of([](GgufWriter&) {}, options);
}

void expect_refused(ErrorCode code, std::vector<std::string> parts, const Change& change) {
  parts.push_back("tiny.gguf");
  expect_error(code, parts, [&] { config_of(change); });
}

std::vector<float> numbers(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count), 1.0f);
}

void replace(GgufWriter& writer, const std::string& name, const std::vector<std::int64_t>& shape,
             Format format) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  writer.remove_tensor(name).add_tensor(name, shape, format, numbers(count));
}

TEST(ModelConfig, ReadsAllFields) {
  RandomModelOptions options;
  options.layers = 3;
  options.width = 96;
  options.ffn_width = 224;
  options.heads = 6;
  options.kv_heads = 3;
  options.vocabulary = 300;
  options.context = 128;
  options.norm_epsilon = 1e-6f;
  options.rope_base = 500000.0f;
  const ModelConfig config = config_of(options);
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.layers, 3);
  EXPECT_EQ(config.width, 96);
  EXPECT_EQ(config.ffn_width, 224);
  EXPECT_EQ(config.heads, 6);
  EXPECT_EQ(config.kv_heads, 3);
  EXPECT_EQ(config.head_width, 16);
  EXPECT_EQ(config.rope_dimensions, 16);
  EXPECT_EQ(config.vocabulary, 300);
  EXPECT_EQ(config.context, 128);
  EXPECT_EQ(config.norm_epsilon, 1e-6f);
  EXPECT_EQ(config.rope_base, 500000.0f);
  EXPECT_EQ(config.rope_scaling, RopeScaling::none);
  EXPECT_FALSE(config.tied_output);
}

TEST(ModelConfig, HeadsOfTheirOwnWidth) {
  RandomModelOptions options;
  options.width = 48;
  options.heads = 5;
  options.kv_heads = 5;
  options.head_width = 12;
  const ModelConfig config = config_of(options);
  EXPECT_EQ(config.head_width, 12);
  EXPECT_EQ(config.query_width(), 60);
}

TEST(ModelConfig, Defaults) {
  const ModelConfig config = config_of([](GgufWriter& writer) {
    writer.remove("llama.rope.dimension_count").remove("llama.rope.freq_base").remove("llama.vocab_size");
  });
  EXPECT_EQ(config.rope_dimensions, 16);
  EXPECT_EQ(config.rope_base, 10000.0f);
  RandomModelOptions options;
  options.kv_heads = options.heads;
  EXPECT_EQ(config_of([](GgufWriter& w) { w.remove("llama.attention.head_count_kv"); }, options).kv_heads, 4);
}

TEST(ModelConfig, TiedOutputAndItsCopy) {
  RandomModelOptions options;
  options.output = OutputMatrix::tied;
  EXPECT_TRUE(config_of(options).tied_output);
  options.output = OutputMatrix::copy_of_embedding;
  EXPECT_FALSE(config_of(options).tied_output);
  // An empty tensor counts as absent.
  EXPECT_TRUE(
      config_of([](GgufWriter& writer) {
        writer.remove_tensor("output.weight").add_tensor("output.weight", {0}, Format::f32, numbers(0));
      }).tied_output);
}

TEST(ModelConfig, EmptyTensorsOfAnyNameAreIgnored) {
  for (const char* name : {"marker", "blk.0.attn_q.bias", "output_norm.bias"})
    EXPECT_EQ(config_of([&](GgufWriter& w) { w.add_tensor(name, {0}, Format::f32, numbers(0)); }).layers, 2)
        << name;
}

TEST(ModelConfig, UnknownArchitectureIsNamedWithTheSupported) {
  expect_refused(ErrorCode::unsupported, {"architecture 'mamba'", "supported are: llama"},
                 [](GgufWriter& writer) { writer.set("general.architecture", "mamba"); });
  expect_refused(ErrorCode::format, {"general.architecture", "missing"},
                 [](GgufWriter& writer) { writer.remove("general.architecture"); });
}

TEST(ModelConfig, ZeroAndNegativeSizesAreRefusedByKey) {
  for (const char* key :
       {"block_count", "embedding_length", "feed_forward_length", "context_length", "attention.head_count",
        "attention.head_count_kv", "attention.key_length", "rope.dimension_count"}) {
    const std::string full = std::string("llama.") + key;
    expect_refused(ErrorCode::format, {"'" + full + "' is 0"},
                   [&](GgufWriter& writer) { writer.set(full, std::uint32_t{0}); });
    expect_refused(ErrorCode::format, {"'" + full + "' is -4"},
                   [&](GgufWriter& writer) { writer.set(full, std::int32_t{-4}); });
    expect_refused(ErrorCode::format, {"'" + full + "' is 4611686018427387904"},
                   [&](GgufWriter& writer) { writer.set(full, std::uint64_t{1} << 62); });
  }
  for (const char* key : {"attention.layer_norm_rms_epsilon", "rope.freq_base"})
    for (const float value :
         {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      expect_refused(ErrorCode::format, {std::string("'llama.") + key},
                     [&](GgufWriter& writer) { writer.set(std::string("llama.") + key, value); });
}

TEST(ModelConfig, MissingAndMistypedKeys) {
  for (const char* key : {"llama.block_count", "llama.embedding_length", "llama.attention.head_count",
                          "llama.attention.layer_norm_rms_epsilon"}) {
    expect_refused(ErrorCode::format, {key, "missing"}, [&](GgufWriter& writer) { writer.remove(key); });
    expect_refused(ErrorCode::format, {key, "STRING"}, [&](GgufWriter& writer) { writer.set(key, "8"); });
  }
}

TEST(ModelConfig, HeadsThatDoNotFit) {
  expect_refused(ErrorCode::format, {"head_count_kv", "3"},
                 [](GgufWriter& w) { w.set("llama.attention.head_count_kv", std::uint32_t{3}); });
  expect_refused(ErrorCode::format, {"attention.head_count", "width 64"}, [](GgufWriter& w) {
    w.set("llama.attention.head_count", std::uint32_t{7})
        .set("llama.attention.head_count_kv", std::uint32_t{7});
  });
  expect_refused(ErrorCode::unsupported, {"value_length", "8"},
                 [](GgufWriter& w) { w.set("llama.attention.value_length", std::uint32_t{8}); });
  for (const std::uint32_t dimensions : {3u, 18u})
    expect_refused(ErrorCode::format, {"rope.dimension_count", std::to_string(dimensions)},
                   [&](GgufWriter& w) { w.set("llama.rope.dimension_count", dimensions); });
}

TEST(ModelConfig, RopeScaling) {
  const auto scaled = [](const Change& change) { return config_of(change); };
  const ModelConfig linear = scaled([](GgufWriter& w) {
    w.set("llama.rope.scaling.type", "linear").set("llama.rope.scaling.factor", 4.0f);
  });
  EXPECT_EQ(linear.rope_scaling, RopeScaling::linear);
  EXPECT_EQ(linear.rope_scale, 4.0f);
  const ModelConfig old = scaled([](GgufWriter& w) { w.set("llama.rope.scale_linear", 2.0f); });
  EXPECT_EQ(old.rope_scaling, RopeScaling::linear);
  EXPECT_EQ(old.rope_scale, 2.0f);
  const ModelConfig yarn = scaled([](GgufWriter& w) {
    w.set("llama.rope.scaling.type", "yarn").set("llama.rope.scaling.factor", 8.0f);
    w.set("llama.rope.scaling.original_context_length", std::uint32_t{64});
  });
  EXPECT_EQ(yarn.rope_scaling, RopeScaling::yarn);
  EXPECT_EQ(yarn.rope_scale, 8.0f);
  EXPECT_EQ(yarn.rope_original_context, 64);
  const ModelConfig none = scaled(
      [](GgufWriter& w) { w.set("llama.rope.scaling.type", "none").set("llama.rope.scaling.factor", 4.0f); });
  EXPECT_EQ(none.rope_scaling, RopeScaling::none);
  EXPECT_EQ(none.rope_scale, 1.0f);
  EXPECT_EQ(scaled([](GgufWriter& w) { w.set("llama.rope.scale_linear", 1.0f); }).rope_scaling,
            RopeScaling::none);
  expect_refused(ErrorCode::format, {"rope.scaling.factor", "missing"}, [](GgufWriter& w) {
    w.set("llama.rope.scaling.type", "yarn").remove("llama.rope.scaling.factor");
  });
  expect_refused(ErrorCode::format, {"rope.scale_linear", "0"},
                 [](GgufWriter& w) { w.set("llama.rope.scale_linear", 0.0f); });
  expect_refused(ErrorCode::unsupported, {"rope.scaling.type", "'longrope'"},
                 [](GgufWriter& w) { w.set("llama.rope.scaling.type", "longrope"); });
}

TEST(ModelConfig, VariantsOfTheArchitectureAreRefused) {
  expect_refused(ErrorCode::unsupported, {"llama.expert_count", "8"},
                 [](GgufWriter& w) { w.set("llama.expert_count", std::uint32_t{8}); });
  expect_refused(ErrorCode::unsupported, {"llama.attention.causal"},
                 [](GgufWriter& w) { w.set("llama.attention.causal", false); });
  expect_refused(ErrorCode::unsupported, {"yarn_beta_fast", "16"},
                 [](GgufWriter& w) { w.set("llama.rope.scaling.yarn_beta_fast", 16.0f); });
  EXPECT_EQ(config_of([](GgufWriter& w) { w.set("llama.expert_count", std::uint32_t{0}); }).layers, 2);
}

TEST(ModelConfig, MissingTensorsAreNamed) {
  for (const char* name :
       {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.1.attn_q.weight",
        "blk.0.attn_k.weight", "blk.1.attn_v.weight", "blk.0.attn_output.weight", "blk.1.ffn_norm.weight",
        "blk.0.ffn_gate.weight", "blk.1.ffn_up.weight", "blk.0.ffn_down.weight"})
    expect_refused(ErrorCode::format, {"'" + std::string(name) + "' is missing"},
                   [&](GgufWriter& writer) { writer.remove_tensor(name); });
  expect_refused(ErrorCode::format, {"'blk.2.attn_norm.weight' is missing"},
                 [](GgufWriter& writer) { writer.set("llama.block_count", std::uint32_t{3}); });
}

TEST(ModelConfig, ShapesAreChecked) {
  expect_refused(ErrorCode::format, {"'blk.1.ffn_down.weight'", "[64, 160]", "[160, 64]"}, [](GgufWriter& w) {
    replace(w, "blk.1.ffn_down.weight", {64, 160}, Format::f32);
  });
  expect_refused(ErrorCode::format, {"'blk.0.attn_k.weight'", "[64, 64]", "[64, 32]"}, [](GgufWriter& w) {
    replace(w, "blk.0.attn_k.weight", {64, 64}, Format::f32);
  });
  expect_refused(ErrorCode::format, {"'output_norm.weight'", "[32]", "[64]"},
                 [](GgufWriter& w) { replace(w, "output_norm.weight", {32}, Format::f32); });
  expect_refused(ErrorCode::format, {"'output.weight'"}, [](GgufWriter& w) {
    replace(w, "output.weight", {64, 511}, Format::f32);
  });
  expect_refused(ErrorCode::format, {"'token_embd.weight'"},
                 [](GgufWriter& w) { replace(w, "token_embd.weight", {64}, Format::f32); });
  EXPECT_EQ(config_of([](GgufWriter& w) {
              replace(w, "output_norm.weight", {64, 1}, Format::f32);
            }).width,
            64);
}

TEST(ModelConfig, NormsAreF32) {
  expect_refused(ErrorCode::unsupported, {"'blk.0.ffn_norm.weight'", "F16", "F32"},
                 [](GgufWriter& w) { replace(w, "blk.0.ffn_norm.weight", {64}, Format::f16); });
}

TEST(ModelConfig, MatricesOfEveryFormat) {
  for (const Format format : tensor::all_formats) {
    RandomModelOptions options;
    options.width = 256;
    options.ffn_width = 256;
    options.format = format;
    EXPECT_EQ(config_of(options).width, 256) << tensor::traits(format).name;
  }
}

TEST(ModelConfig, VocabularyMustAgree) {
  expect_refused(ErrorCode::format, {"tokenizer.ggml.tokens", "3 entries", "512 rows"}, [](GgufWriter& w) {
    w.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"});
  });
  expect_refused(ErrorCode::format, {"llama.vocab_size", "500", "512"}, [](GgufWriter& w) {
    w.remove("tokenizer.ggml.tokens").set("llama.vocab_size", std::uint32_t{500});
  });
}

TEST(ModelConfig, RopeFactors) {
  RandomModelOptions options;
  options.rope_freqs = numbers(8);
  EXPECT_EQ(config_of(options).rope_dimensions, 16);
  options.rope_freqs = numbers(7);
  expect_error(ErrorCode::format, {"'rope_freqs.weight'", "[7]", "[8]"}, [&] { config_of(options); });
}

TEST(ModelConfig, TensorsThatWouldBeIgnoredAreRefused) {
  for (const char* name : {"blk.0.attn_q.bias", "blk.1.attn_output.bias", "blk.0.attn_q_norm.weight",
                           "blk.0.ffn_gate_inp.weight", "blk.2.attn_norm.weight", "blk.x.y", "output.bias",
                           "output_norm.bias", "token_embd_norm.weight"})
    expect_refused(ErrorCode::unsupported, {"'" + std::string(name) + "'"},
                   [&](GgufWriter& w) { w.add_tensor(name, {64}, Format::f32, numbers(64)); });
  for (const char* name : {"something.else", "blk.0.attn_rot_embd.weight"})
    EXPECT_EQ(config_of([&](GgufWriter& w) { w.add_tensor(name, {64}, Format::f32, numbers(64)); }).layers,
              2);
}

}  // namespace
}  // namespace shoal::infer
