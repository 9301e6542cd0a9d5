// SPDX-License-Identifier: Apache-2.0
// Plans: the partition against brute force, the cases of few layers and uneven shares, the accounting, and
// the messages when a model does not fit.
#include "shoal/infer/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "infer/model_fixture.h"
#include "infer/partition.h"
#include "shoal/base/error.h"
#include "shoal/base/format_bytes.h"
#include "shoal/infer/weights.h"

namespace shoal::infer {
namespace {

using test::OpenModel;

std::vector<std::int64_t> layer_counts(const Plan& plan) {
  std::vector<std::int64_t> counts;
  for (const PePlan& pe : plan.pes) counts.push_back(pe.layers());
  return counts;
}

std::vector<PeCapacity> equal_pes(std::size_t count) { return std::vector<PeCapacity>(count); }

PipelineLoads equal_layers(std::size_t count) {
  return PipelineLoads({.layers = std::vector<std::uint64_t>(count, 1000)});
}

/// The smallest largest load / share over all partitions of the layers from `begin` on, by trying them.
double brute_force(const PipelineLoads& loads, const std::vector<PeCapacity>& pes, std::size_t pe,
                   std::int64_t begin) {
  if (pe == pes.size()) return begin == loads.layers() ? 0.0 : INFINITY;
  double best = INFINITY;
  for (std::int64_t n = 0; n <= (pes[pe].share > 0 ? loads.layers() - begin : 0); ++n) {
    const std::uint64_t load = loads.load(static_cast<std::int64_t>(pe), begin, n);
    if (load > pes[pe].limit) continue;
    const double ratio = pes[pe].share > 0 ? static_cast<double>(load) / pes[pe].share : 0.0;
    best = std::min(best, std::max(ratio, brute_force(loads, pes, pe + 1, begin + n)));
  }
  return best;
}

double largest_ratio(const PipelineLoads& loads, const std::vector<PeCapacity>& pes,
                     const std::vector<std::int64_t>& counts) {
  double largest = 0;
  std::int64_t begin = 0;
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    const std::uint64_t load = loads.load(static_cast<std::int64_t>(pe), begin, counts[pe]);
    EXPECT_LE(load, pes[pe].limit);
    if (pes[pe].share > 0) largest = std::max(largest, static_cast<double>(load) / pes[pe].share);
    begin += counts[pe];
  }
  return largest;
}

std::string error_of(const OpenModel& model, const PlanOptions& options, ErrorCode code) {
  try {
    make_plan(model.file, model.config, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "accepted";
}

RandomModelOptions layered(std::int64_t layers, OutputMatrix output = OutputMatrix::own) {
  RandomModelOptions options;
  options.layers = layers;
  options.width = 32;
  options.ffn_width = 64;
  options.vocabulary = 259;
  options.output = output;
  return options;
}

TEST(Partition, EqualLayersAreSpreadEvenlyTheFirstPesTakeTheRest) {
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(partition(equal_layers(22), equal_pes(8)), (Counts{3, 3, 3, 3, 3, 3, 2, 2}));
  EXPECT_EQ(partition(equal_layers(2), equal_pes(5)), (Counts{1, 1, 0, 0, 0}));
  EXPECT_EQ(partition(equal_layers(10), equal_pes(3)), (Counts{4, 3, 3}));
  for (std::size_t layers = 1; layers <= 40; ++layers)
    for (std::size_t pes = 1; pes <= 9; ++pes) {
      const Counts counts = partition(equal_layers(layers), equal_pes(pes));
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}),
                static_cast<std::int64_t>(layers));
      EXPECT_TRUE(std::ranges::is_sorted(counts, std::greater<>()));
      EXPECT_LE(counts.front() - counts.back(), 1);
    }
}

TEST(Partition, IsAsGoodAsTheBestOfAll) {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  int impossible = 0;
  for (int round = 0; round < 300; ++round) {
    PipelineCosts costs;
    for (std::uint64_t i = 0, layers = 1 + below(8); i < layers; ++i) costs.layers.push_back(1 + below(100));
    costs.stage = below(20);
    costs.first = below(300);
    costs.first_stage = below(20);
    costs.last = below(300);
    costs.every = below(10);
    std::vector<PeCapacity> pes(1 + below(5));
    for (PeCapacity& pe : pes) {
      pe.share = below(5) == 0 ? 0.0 : static_cast<double>(1 + below(9));
      if (below(3) == 0) pe.limit = 150 + below(400);
    }
    const PipelineLoads loads(costs);
    const double best = brute_force(loads, pes, 0, 0);
    const std::vector<std::int64_t> counts = partition(loads, pes);
    ASSERT_EQ(counts.empty(), std::isinf(best)) << "round " << round;
    if (counts.empty()) {
      ++impossible;
      continue;
    }
    EXPECT_NEAR(largest_ratio(loads, pes, counts), best, 1e-9 * best) << "round " << round;
  }
  EXPECT_GT(impossible, 10);
  EXPECT_LT(impossible, 200);
}

TEST(Partition, FitsAgreesWithThePartition) {
  std::mt19937_64 random(8);
  int fitting = 0;
  for (int round = 0; round < 500; ++round) {
    PipelineCosts costs;
    for (std::uint64_t i = 0, layers = 1 + random() % 9; i < layers; ++i)
      costs.layers.push_back(1 + random() % 100);
    costs.stage = random() % 20;
    costs.first = random() % 100;
    costs.last = random() % 100;
    const std::size_t pes = 1 + random() % 6;
    const std::uint64_t limit = 50 + random() % 300;
    const PipelineLoads loads(costs);
    const bool possible =
        !partition(loads, std::vector<PeCapacity>(pes, {.share = 1.0, .limit = limit})).empty();
    EXPECT_EQ(fits(loads, static_cast<std::int64_t>(pes), limit), possible) << "round " << round;
    fitting += possible ? 1 : 0;
  }
  EXPECT_GT(fitting, 100);
  EXPECT_LT(fitting, 400);
}

TEST(Partition, ThousandsOfPesTakeNoTime) {
  const std::vector<std::int64_t> counts = partition(equal_layers(126), equal_pes(4096));
  EXPECT_EQ(std::ranges::count(counts, 1), 126);
}

TEST(Plan, HoldsEveryTensorOnceForAnyNumberOfPes) {
  for (const OutputMatrix output : {OutputMatrix::own, OutputMatrix::tied}) {
    const OpenModel model(layered(7, output));
    std::uint64_t all = 0;
    for (const TensorInfo& tensor : model.file.tensors()) all += held_bytes(tensor);
    for (int pes = 1; pes <= 12; ++pes) {
      const Plan plan = make_plan(model.file, model.config, {.pes = pes});
      std::uint64_t weights = 0;
      std::int64_t next_layer = 0;
      for (const PePlan& pe : plan.pes) {
        EXPECT_EQ(pe.layer_begin, next_layer);
        next_layer = pe.layer_end;
        weights += pe.weight_bytes;
        EXPECT_EQ(pe.has_embedding, pe.pe == 0);
        EXPECT_EQ(pe.has_output, pe.pe == plan.output_pe);
        std::uint64_t shard = 0;
        for (const std::string& name : shard_tensors(model.file, model.config, pe))
          shard += held_bytes(model.file.tensor(name));
        EXPECT_EQ(pe.weight_bytes, shard);
        EXPECT_EQ(pe.kv_bytes,
                  static_cast<std::uint64_t>(pe.layers()) * kv_layer_bytes(model.config, 256, KvFormat::f16));
        EXPECT_EQ(pe.segment_bytes,
                  static_cast<std::uint64_t>(pes < 3 ? pes - 1 : 3) * 2 * (segment_bytes(64, 32) + 128) +
                      static_cast<std::uint64_t>(pes) * 64);
      }
      EXPECT_EQ(next_layer, 7);
      EXPECT_EQ(weights, all);
      EXPECT_EQ(plan.pipeline.front(), 0);
      EXPECT_EQ(plan.output_pe, output == OutputMatrix::tied ? 0 : plan.pipeline.back());
    }
  }
}

TEST(Plan, ASegmentHoldsTwoChunks) {
  for (const std::int64_t chunk : {1, 64})
    for (const std::int64_t width : {32, 4096}) {
      const auto states = static_cast<std::uint64_t>(2 * chunk * width * 4);
      EXPECT_GT(segment_bytes(chunk, width), states);
      EXPECT_LT(segment_bytes(chunk, width), states + 1024u);
    }
}

TEST(Plan, MorePesThanLayersLeavesIdleOnesThatAreReported) {
  const OpenModel model(layered(2));
  const Plan plan = make_plan(model.file, model.config, {.pes = 5});
  EXPECT_EQ(std::ranges::count_if(plan.pes, &PePlan::idle), 5 - static_cast<int>(plan.pipeline.size()));
  EXPECT_GE(std::ranges::count_if(plan.pes, &PePlan::idle), 2);
  for (const PePlan& pe : plan.pes) {
    if (pe.idle()) {
      EXPECT_EQ(pe.total_bytes(), pe.segment_bytes);
    }
  }
  EXPECT_NE(format_plan(plan).find("idle"), std::string::npos);
}

TEST(Plan, SharesDecideAndZeroMeansNoLayers) {
  const OpenModel model(layered(12));
  const Plan plan = make_plan(model.file, model.config, {.pes = 3, .shares = {1, 0, 1}});
  EXPECT_EQ(plan.pes[1].layers(), 0);
  EXPECT_TRUE(plan.pes[1].idle());
  EXPECT_EQ(plan.pes[0].layers() + plan.pes[2].layers(), 12);
  EXPECT_EQ(plan.pipeline, (std::vector<int>{0, 2}));
  EXPECT_EQ(make_plan(model.file, model.config, {.pes = 3, .shares = {0, 0, 1}}).pes[2].layers(), 12);

  const std::uint64_t gib = 1u << 30;
  const Plan by_memory = make_plan(model.file, model.config, {.pes = 3, .memory = {gib, 0, 3 * gib}});
  EXPECT_EQ(by_memory.pes[1].layers(), 0);
  EXPECT_GT(by_memory.pes[2].layers(), 2 * by_memory.pes[0].layers());
  // Shares that hardly differ: no drift, every layer placed once.
  const auto counts = layer_counts(make_plan(model.file, model.config, {.pes = 2, .shares = {0.49, 0.51}}));
  EXPECT_EQ(counts[0] + counts[1], 12);
  EXPECT_LE(std::abs(counts[0] - counts[1]), 2);
}

TEST(Plan, ALargeTableCountsAsMuchAsItsLayers) {
  RandomModelOptions options = layered(6, OutputMatrix::tied);
  options.vocabulary = 4000;  // the embedding weighs as much as dozens of layers
  const OpenModel model(options);
  const Plan plan = make_plan(model.file, model.config, {.pes = 3, .context = 16, .chunk_tokens = 1});
  EXPECT_EQ(layer_counts(plan), (std::vector<std::int64_t>{0, 3, 3}));
  EXPECT_EQ(plan.output_pe, 0);
  EXPECT_EQ(plan.pipeline, (std::vector<int>{0, 1, 2}));
  const std::string text = format_plan(plan);
  EXPECT_NE(text.find("tied"), std::string::npos);
  EXPECT_NE(text.find("PE 2 sends the last hidden state back to PE 0"), std::string::npos);
}

TEST(Plan, SaysByHowMuchItDoesNotFitAndOnHowManyPesItWould) {
  RandomModelOptions options = layered(16);
  options.width = 256;
  options.ffn_width = 512;
  const OpenModel model(options);
  const std::uint64_t memory = 12u << 20;
  PlanOptions asked{.pes = 1, .memory = {memory}};
  const std::string message = error_of(model, asked, ErrorCode::out_of_memory);
  const std::uint64_t needed = make_plan(model.file, model.config, {}).pes[0].total_bytes();
  EXPECT_EQ(message.find("model random.gguf needs " + format_bytes(needed) +
                         " on the fullest PE, 0, but --memory gives 12.0 MiB: short by " +
                         format_bytes(needed - memory) + "; it would fit on "),
            0u)
      << message;
  // What it says is true, and one fewer is not enough.
  asked.pes = std::stoi(message.substr(message.find("would fit on ") + 13));
  ASSERT_GT(asked.pes, 1);
  for (const PePlan& pe : make_plan(model.file, model.config, asked).pes) EXPECT_LE(pe.total_bytes(), memory);
  --asked.pes;
  error_of(model, asked, ErrorCode::out_of_memory);
}

TEST(Plan, SaysWhyNoNumberOfPesIsEnough) {
  RandomModelOptions options = layered(3);
  options.vocabulary = 40000;  // 5 MB of embedding
  const OpenModel wide(options);
  EXPECT_NE(error_of(wide, {.pes = 2, .memory = {1u << 20}}, ErrorCode::out_of_memory)
                .find("it fits on no number of PEs, because the token embedding alone needs"),
            std::string::npos);
  const OpenModel deep(layered(3));
  EXPECT_NE(error_of(deep, {.pes = 2, .context = 1 << 20, .memory = {8u << 20}}, ErrorCode::out_of_memory)
                .find("it fits on no number of PEs, because layer 0 with its KV cache alone needs"),
            std::string::npos);
  EXPECT_NE(error_of(deep, {.pes = 2, .memory = {1u << 30, 4096}, .shares = {0, 1}}, ErrorCode::out_of_memory)
                .find("fullest PE, 1,"),
            std::string::npos);
}

TEST(Plan, OptionsThatMakeNoSenseAreRefused) {
  const OpenModel model(layered(2));
  const std::pair<PlanOptions, const char*> cases[] = {
      {{.pes = 0}, "number of PEs"},
      {{.context = -1}, "context"},
      {{.chunk_tokens = 0}, "chunk"},
      {{.threads = 0}, "threads"},
      {{.pes = 3, .memory = {1, 2}}, "--memory has 2 values for 3 PEs"},
      {{.pes = 2, .memory = {0, 2}}, "PE 0"},
      {{.pes = 3, .shares = {1, 2}}, "shares has 2 values"},
      {{.pes = 2, .shares = {1, -1}}, "share"},
      {{.pes = 2, .shares = {0, 0}}, "positive"},
      {{.context = std::int64_t{1} << 62}, "64 bits"},
  };
  for (const auto& [options, part] : cases)
    EXPECT_NE(error_of(model, options, ErrorCode::invalid_argument).find(part), std::string::npos) << part;
}

TEST(Plan, ContextAndFormatOfTheCacheChangeItsSize) {
  const OpenModel model(layered(2));
  const auto kv = [&](std::int64_t context, KvFormat format) {
    return make_plan(model.file, model.config, {.context = context, .kv_format = format}).pes[0].kv_bytes;
  };
  EXPECT_EQ(kv(100, KvFormat::f32), 2 * kv(100, KvFormat::f16));
  EXPECT_EQ(kv(0, KvFormat::f16), kv(256, KvFormat::f16));
  EXPECT_EQ(kv(100, KvFormat::f16),
            2u * 2u * 16u * 100u * 2u);  // layers, k and v, kv width, positions, bytes
  EXPECT_EQ(kv_format_from_string("f32"), KvFormat::f32);
  EXPECT_THROW(kv_format_from_string("q8"), Error);
}

TEST(Plan, JsonSaysTheSame) {
  const OpenModel model(layered(4));
  const Plan plan = make_plan(model.file, model.config, {.pes = 2});
  const auto json = nlohmann::json::parse(format_plan_json(plan));
  ASSERT_EQ(json["pes"].size(), 2u);
  EXPECT_EQ(json["pes"][1]["layer_begin"], plan.pes[1].layer_begin);
  EXPECT_EQ(json["pes"][1]["total_bytes"], plan.pes[1].total_bytes());
  EXPECT_EQ(json["pipeline"], plan.pipeline);
  EXPECT_EQ(json["output_pe"], 1);
}

}  // namespace
}  // namespace shoal::infer
