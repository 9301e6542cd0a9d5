// SPDX-License-Identifier: Apache-2.0
// The forward pass: against a float64 reference of a real model, against the formulas in double for
// made-up ones in every format and shape, and bit for bit against itself however it is split.
#include "shoal/infer/stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "infer/reference_forward.h"
#include "infer/rope.h"
#include "infer/stage_chain.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

using test::OpenModel;
using test::StageChain;
using Logits = std::vector<std::vector<float>>;

std::vector<Token> some_tokens(std::size_t count, std::int64_t vocabulary) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<Token>((i * 7919 + 13) % static_cast<std::size_t>(vocabulary)));
  return tokens;
}

/// 28 heads over 4 KV heads of a width that is not width / heads: the shape that most splits find hard.
RandomModelOptions grouped(tensor::Format format = tensor::Format::f32) {
  RandomModelOptions options;
  options.layers = 5;
  options.width = 256;
  options.ffn_width = 512;
  options.heads = 28;
  options.kv_heads = 4;
  options.head_width = 64;  // 28 * 64 = 1792 = 7 * 256 columns
  options.vocabulary = 300;
  options.format = format;
  return options;
}

void expect_same_bits(const Logits& a, const Logits& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t t = 0; t < a.size(); ++t) {
    ASSERT_EQ(a[t].size(), b[t].size());
    EXPECT_EQ(std::memcmp(a[t].data(), b[t].data(), a[t].size() * sizeof(float)), 0) << "token " << t;
  }
}

/// The largest difference to the reference, relative to the reference's standard deviation.
double relative_error(const Logits& logits, const OpenModel& model, std::span<const Token> tokens) {
  test::ReferenceModel reference(model.file, model.config);
  double largest = 0;
  double squares = 0;
  std::size_t count = 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const test::Vector expected = reference.next(tokens[t]);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double error = std::abs(expected[i] - double{logits[t][i]});
      if (!(error <= largest)) largest = error;  // a NaN stays
      squares += expected[i] * expected[i];
      ++count;
    }
  }
  return largest / std::sqrt(squares / static_cast<double>(count));
}

// Parameters are names, so that the tests are called by them.
std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const tensor::KernelSet* kernels : tensor::available_kernels()) names.emplace_back(kernels->name);
  return names;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const tensor::Format format : tensor::all_formats) names.emplace_back(tensor::traits(format).name);
  return names;
}

tensor::Format format_named(const std::string& name) {
  return *std::ranges::find(tensor::all_formats, name,
                            [](tensor::Format f) { return tensor::traits(f).name; });
}

class EveryKernelSet : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Stage, EveryKernelSet, testing::ValuesIn(kernel_names()));

// --- a real model ---

struct Stories {
  OpenModel model{test::test_model("stories260K.gguf")};
  std::vector<Token> prompt, greedy;
  std::vector<double> logits;  // (32, 512)

  Stories() {
    std::ifstream text(test::test_model("stories260K.expected.json"));
    const auto json = nlohmann::json::parse(text);
    prompt = json["prompt_ids"].get<std::vector<Token>>();
    greedy = json["greedy_ids"].get<std::vector<Token>>();
    // The .npy format: a header of a length that stands at byte 8, then the array.
    std::ifstream array(test::test_model("stories260K.logits.f64.npy"), std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(array)), {});
    const std::size_t begin =
        10u + static_cast<unsigned char>(bytes.at(8)) + 256u * static_cast<unsigned char>(bytes.at(9));
    logits.resize(32 * 512);
    if (bytes.size() != begin + logits.size() * sizeof(double))
      throw std::runtime_error("unexpected .npy size");
    std::memcpy(logits.data(), bytes.data() + begin, logits.size() * sizeof(double));
  }

  std::vector<Token> text(std::size_t count) const {
    std::vector<Token> tokens = prompt;
    tokens.insert(tokens.end(), greedy.begin(), greedy.end());
    tokens.resize(count);
    return tokens;
  }
};

#define SKIP_WITHOUT_STORIES()                                        \
  if (!std::filesystem::exists(test::test_model("stories260K.gguf"))) \
  GTEST_SKIP() << "no test data: " << test::test_model("stories260K.gguf")

TEST_P(EveryKernelSet, LogitsOfARealModelAreThoseOfTheFloat64Reference) {
  SKIP_WITHOUT_STORIES();
  const Stories stories;
  StageChain chain(stories.model, {.kv_format = KvFormat::f32}, *tensor::find_kernels(GetParam()));
  const Logits logits = chain.run(stories.text(32));
  double largest = 0;
  for (std::size_t t = 0; t < 32; ++t)
    for (std::size_t i = 0; i < 512; ++i)
      largest = std::max(largest, std::abs(double{logits[t][i]} - stories.logits[t * 512 + i]));
  EXPECT_LT(largest, 1e-4);
  EXPECT_GT(largest, 0.0);  // float is not double: zero would mean that nothing was compared
  RecordProperty("largest_error", std::to_string(largest));
}

TEST_P(EveryKernelSet, GreedyTextOfARealModelIsTheKnownOne) {
  SKIP_WITHOUT_STORIES();
  const Stories stories;
  for (const KvFormat format : {KvFormat::f32, KvFormat::f16}) {
    StageChain chain(stories.model, {.pes = 3, .kv_format = format}, *tensor::find_kernels(GetParam()));
    std::vector<Token> generated;
    std::vector<float> logits = chain.run(stories.prompt, false).back();
    while (generated.size() < 100) {
      generated.push_back(static_cast<Token>(std::ranges::max_element(logits) - logits.begin()));
      logits = chain.run(std::span(generated).last(1)).back();
    }
    EXPECT_EQ(generated, stories.greedy) << to_string(format);
  }
}

// --- made-up models against the formulas ---

class EveryFormat : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Stage, EveryFormat, testing::ValuesIn(format_names()));

/// Quantised weights are multiplied with activations of 8 bits: 0.5/127 of a block's maximum each, which
/// over the products of five layers comes to a few percent of a logit's spread at the worst of thousands.
double tolerance(tensor::Format format) { return tensor::traits(format).block_elements == 1 ? 1e-4 : 0.15; }

TEST_P(EveryFormat, LogitsFollowTheFormulasInEveryKernelSet) {
  const tensor::Format format = format_named(GetParam());
  const OpenModel model(grouped(format));
  const std::vector<Token> tokens = some_tokens(12, model.config.vocabulary);
  for (const tensor::KernelSet* kernels : tensor::available_kernels()) {
    StageChain chain(model, {.pes = 2, .kv_format = KvFormat::f32, .chunk_tokens = 5, .threads = 2},
                     *kernels);
    const double error = relative_error(chain.run(tokens), model, tokens);
    EXPECT_LT(error, tolerance(format)) << kernels->name;
    RecordProperty("error_" + std::string(kernels->name), std::to_string(error));
  }
}

TEST(Stage, MixedFormatsWithinALayer) {
  RandomModelOptions options = grouped(tensor::Format::q4_k);
  options.more_bits = true;  // some of v and down in Q6_K
  options.output_format = tensor::Format::q6_k;
  const OpenModel model(options);
  const std::vector<Token> tokens = some_tokens(8, model.config.vocabulary);
  StageChain chain(model, {.kv_format = KvFormat::f32});
  EXPECT_LT(relative_error(chain.run(tokens), model, tokens), tolerance(options.format));
}

TEST(Stage, ACacheInHalfPrecisionIsNearlyAsGood) {
  const OpenModel model(grouped());
  const std::vector<Token> tokens = some_tokens(12, model.config.vocabulary);
  StageChain chain(model, {.kv_format = KvFormat::f16});
  const double error = relative_error(chain.run(tokens), model, tokens);
  EXPECT_LT(error, 5e-3);
  EXPECT_GT(error, 1e-7);
}

TEST(Stage, TiedOutputEqualsACopyOfTheEmbedding) {
  RandomModelOptions options = grouped();
  options.output = OutputMatrix::tied;
  const OpenModel tied(options);
  options.output = OutputMatrix::copy_of_embedding;
  const OpenModel copied(options);
  EXPECT_TRUE(tied.config.tied_output);
  EXPECT_FALSE(copied.config.tied_output);
  const std::vector<Token> tokens = some_tokens(9, 300);
  for (const int pes : {1, 3}) {
    StageChain a(tied, {.pes = pes});
    StageChain b(copied, {.pes = pes});
    const Logits logits = a.run(tokens);
    expect_same_bits(logits, b.run(tokens));
    EXPECT_LT(relative_error(logits, tied, tokens), 5e-3);
  }
}

TEST(Stage, RopeFactorsDivideTheFrequencies) {
  const std::vector<Token> tokens = some_tokens(10, 300);
  const auto logits_with = [&](std::vector<float> factors) {
    RandomModelOptions options = grouped();
    options.rope_freqs = std::move(factors);
    const OpenModel model(options);
    StageChain chain(model, {.kv_format = KvFormat::f32});
    const Logits logits = chain.run(tokens);
    EXPECT_LT(relative_error(logits, model, tokens), 1e-4);
    return logits;
  };
  const Logits without = logits_with({});
  expect_same_bits(logits_with(std::vector<float>(32, 1.0f)), without);
  const Logits twos = logits_with(std::vector<float>(32, 2.0f));
  EXPECT_EQ(twos[0], without[0]);  // at position 0 nothing is rotated
  EXPECT_NE(twos[9], without[9]);
}

// --- the same bits however it is split ---

class Splits : public testing::TestWithParam<std::string> {
 protected:
  void check(const RandomModelOptions& options) {
    const OpenModel model(options);
    const std::vector<Token> tokens = some_tokens(67, model.config.vocabulary);
    StageChain whole(model, {.chunk_tokens = 64}, *tensor::find_kernels(GetParam()));
    const Logits expected = whole.run(tokens);
    for (const int pes : {2, 3, 5}) {
      StageChain split(model, {.pes = pes, .chunk_tokens = 64}, *tensor::find_kernels(GetParam()));
      SCOPED_TRACE(pes);
      expect_same_bits(split.run(tokens), expected);
    }
    for (const std::int64_t chunk : {1, 7, 67}) {
      StageChain split(model, {.chunk_tokens = chunk}, *tensor::find_kernels(GetParam()));
      SCOPED_TRACE(chunk);
      expect_same_bits(split.run(tokens), expected);
    }
    for (const int threads : {2, 3}) {
      StageChain split(model, {.pes = threads, .chunk_tokens = 9, .threads = threads},
                       *tensor::find_kernels(GetParam()));
      SCOPED_TRACE(threads);
      expect_same_bits(split.run(tokens), expected);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Stage, Splits, testing::ValuesIn(kernel_names()));

TEST_P(Splits, FloatsGroupedHeadsOddWidths) {
  RandomModelOptions options;
  options.layers = 5;
  options.width = 84;
  options.ffn_width = 172;  // no multiple of a row granule or a vector
  options.heads = 28;
  options.kv_heads = 4;
  options.head_width = 6;
  options.vocabulary = 301;
  check(options);
}

TEST_P(Splits, QuantisedAndTied) {
  RandomModelOptions options = grouped(tensor::Format::q4_0);
  options.heads = 8;
  options.kv_heads = 2;
  options.head_width = 32;
  options.ffn_width = 256;
  options.output = OutputMatrix::tied;
  check(options);
}

TEST_P(Splits, MixedQuantisation) {
  RandomModelOptions options = grouped(tensor::Format::q4_k);
  options.heads = 4;
  options.kv_heads = 2;
  options.ffn_width = 256;
  options.more_bits = true;
  check(options);
}

TEST(Stage, StoriesInStagesAreTheSameBits) {
  SKIP_WITHOUT_STORIES();
  const Stories stories;
  const std::vector<Token> tokens = stories.text(80);
  StageChain whole(stories.model, {});
  const Logits expected = whole.run(tokens);
  for (const int pes : {2, 3, 5, 6}) {
    StageChain split(stories.model, {.pes = pes, .chunk_tokens = 7, .threads = 2});
    expect_same_bits(split.run(tokens), expected);
  }
}

// --- the cache, memory, and what is refused ---

TEST(Stage, ACutCacheContinuesAsIfNothingHadFollowed) {
  const OpenModel model(grouped());
  const std::vector<Token> tokens = some_tokens(20, 300);
  StageChain chain(model, {.pes = 2});
  const Logits expected = chain.run(tokens);
  chain.truncate(11);
  chain.run(some_tokens(5, 299));
  chain.truncate(11);
  const Logits again = chain.run(std::span(tokens).subspan(11));
  expect_same_bits(again, {expected.begin() + 11, expected.end()});
}

TEST(Weights, AreTheBytesOfTheFileAndTheirReadingIsReported) {
  RandomModelOptions options = grouped(tensor::Format::q8_0);
  options.vocabulary = 40000;  // several pieces
  options.files = 2;
  const OpenModel model(options);
  const Plan plan = make_plan(model.file, model.config, {.pes = 2});
  ThreadTeam team(3);
  std::uint64_t last_done = 0;
  std::uint64_t last_total = 0;
  const auto caller = std::this_thread::get_id();
  const Weights weights =
      load_weights(model.file, model.config, plan, 0, team, [&](std::uint64_t done, std::uint64_t total) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        EXPECT_GE(done, last_done);
        EXPECT_LE(done, total);
        last_done = done;
        last_total = total;
      });
  EXPECT_EQ(last_done, last_total);
  EXPECT_GT(last_total, 10u << 20);
  const TensorInfo& info = model.file.tensor("token_embd.weight");
  std::vector<std::byte> expected(info.bytes);
  model.file.read(info, 0, expected);
  EXPECT_EQ(std::memcmp(weights.embedding.data, expected.data(), expected.size()), 0);
  EXPECT_EQ(weights.output.rows, 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(weights.embedding.data) % 64, 0u);
}

TEST(Weights, AFileThatShrinksWhileItIsReadIsAnError) {
  RandomModelOptions options = grouped();
  options.vocabulary = 40000;
  const OpenModel model(options);
  const Plan plan = make_plan(model.file, model.config, {});
  ThreadTeam team(2);
  std::filesystem::resize_file(model.file.path(), 20u << 20);
  try {
    load_weights(model.file, model.config, plan, 0, team);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io) << error.what();
  }
}

TEST(Stage, TakesNoMoreMemoryThanPlanned) {
  for (const OutputMatrix output : {OutputMatrix::own, OutputMatrix::tied}) {
    RandomModelOptions options = grouped(tensor::Format::q4_k);
    options.more_bits = true;
    options.output = output;
    const OpenModel model(options);
    for (const tensor::KernelSet* kernels : tensor::available_kernels()) {
      StageChain chain(model, {.pes = 8, .threads = 2}, *kernels);
      for (const PePlan& pe : chain.plan().pes) {
        const auto i = static_cast<std::size_t>(pe.pe);
        EXPECT_EQ(chain.weights(i).memory.size(), pe.weight_bytes);
        EXPECT_EQ(chain.kv(i).bytes(), pe.kv_bytes);
        EXPECT_LE(chain.stage(i).scratch_bytes(), pe.scratch_bytes);
      }
    }
  }
}

TEST(Stage, RefusesWhatItCannotDo) {
  const OpenModel model(grouped());
  StageChain chain(model, {.context = 10, .chunk_tokens = 4});
  const auto code_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return to_string(error.code());
    }
    return "accepted";
  };
  EXPECT_STREQ(code_of([&] { chain.run(std::vector<Token>{300}); }), "invalid_argument");
  EXPECT_STREQ(code_of([&] { chain.run(std::vector<Token>{-1}); }), "invalid_argument");
  EXPECT_STREQ(code_of([&] { chain.run(some_tokens(10, 300)); }), "accepted");
  EXPECT_STREQ(code_of([&] { chain.run(some_tokens(1, 300)); }), "out_of_memory");
  Stage& stage = chain.stage(0);
  std::vector<float> hidden(5 * 256);
  EXPECT_STREQ(code_of([&] { stage.layers(hidden, 10); }), "invalid_argument");  // 5 of at most 4
  EXPECT_STREQ(code_of([&] { stage.layers(std::span(hidden).first(256), 9); }),
               "invalid_argument");  // not next
  EXPECT_STREQ(code_of([&] { chain.truncate(11); }), "invalid_argument");
}

TEST(Stage, NonFiniteActivationsReachTheLogits) {
  const OpenModel model(grouped(tensor::Format::q4_0));
  for (const tensor::KernelSet* kernels : tensor::available_kernels()) {
    StageChain chain(model, {}, *kernels);
    std::vector<float> hidden(256, 0.5f);
    hidden[100] = NAN;
    Stage& stage = chain.stage(0);
    stage.layers(hidden, 0);
    std::vector<float> logits(300);
    stage.logits(hidden, logits);
    EXPECT_TRUE(std::ranges::any_of(logits, [](float logit) { return !std::isfinite(logit); }))
        << kernels->name;
  }
}

// --- rotary positions ---

TEST(Rope, AnglesAreThoseOfTheFormula) {
  ModelConfig config;
  config.rope_dimensions = 8;
  config.rope_base = 10000.0f;
  std::vector<float> cosine(4), sine(4);
  Rope(config, {}).angles(100000, cosine, sine);
  for (int i = 0; i < 4; ++i) {
    const double angle = 100000.0 * std::pow(10000.0, -i / 4.0);
    EXPECT_FLOAT_EQ(cosine[static_cast<std::size_t>(i)], static_cast<float>(std::cos(angle)));
    EXPECT_FLOAT_EQ(sine[static_cast<std::size_t>(i)], static_cast<float>(std::sin(angle)));
  }
  config.rope_scaling = RopeScaling::linear;
  config.rope_scale = 4.0f;
  std::vector<float> scaled(4);
  Rope(config, {}).angles(400000, scaled, sine);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(scaled[i], cosine[i], 1e-6);
}

TEST(Rope, YarnKeepsFastPairsAndInterpolatesSlowOnes) {
  // Llama-like: 128 dimensions, base 10000, 4096 positions stretched 4 times. By hand: the ramp runs from
  // pair floor(20.95) = 20 to pair ceil(45.03) = 46.
  ModelConfig config;
  config.rope_dimensions = 128;
  config.rope_scaling = RopeScaling::yarn;
  config.rope_scale = 4.0f;
  config.rope_original_context = 4096;
  const Rope rope(config, {});
  std::vector<float> cosine(64), sine(64);
  rope.angles(1, cosine, sine);
  const double magnitude = 1.0 + 0.1 * std::log(4.0);
  for (std::size_t i = 0; i < 64; ++i) {
    const double frequency = std::pow(10000.0, -static_cast<double>(i) / 64.0);
    const double kept = 1.0 - std::clamp((static_cast<double>(i) - 20.0) / 26.0, 0.0, 1.0);
    const double angle = frequency * kept + frequency / 4.0 * (1.0 - kept);
    EXPECT_NEAR(cosine[i], std::cos(angle) * magnitude, 1e-6) << i;
    EXPECT_NEAR(sine[i], std::sin(angle) * magnitude, 1e-6) << i;
  }
}

TEST(Rope, RotatesAdjacentElementsAndLeavesTheRest) {
  std::vector<float> x = {1, 0, 0, 1, 5, 6, /* next head */ 0, 2, 3, 0, 7, 8};
  const float cosine[] = {0.0f, 1.0f};  // a quarter turn, none
  const float sine[] = {1.0f, 0.0f};
  Rope::rotate(x, 6, cosine, sine);
  EXPECT_EQ(x, (std::vector<float>{0, 1, 0, 1, 5, 6, -2, 0, 3, 0, 7, 8}));
}

}  // namespace
}  // namespace shoal::infer
