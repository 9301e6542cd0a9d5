// SPDX-License-Identifier: Apache-2.0
// The engine on the threads transport: the same bits whatever the number of PEs, the messages that the
// header promises and no other, and what happens at the edges of context, window and weights.
#include "shoal/infer/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "infer/model_fixture.h"
#include "infer/stage_chain.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/infer/load.h"

namespace shoal::infer {
namespace {

using test::OpenModel;
using test::StageChain;

constexpr std::int64_t chunk = 4;
constexpr std::int64_t context = 64;

RandomModelOptions five_layers(OutputMatrix output = OutputMatrix::own) {
  RandomModelOptions options;
  options.layers = 5;
  options.vocabulary = 300;
  options.output = output;
  return options;
}

PlanOptions plan_options(int pes) {
  return {.pes = pes, .context = context, .kv_format = KvFormat::f16, .chunk_tokens = chunk};
}

SamplerOptions greedy(double repeat_penalty = 1.0) {
  SamplerOptions options;
  options.temperature = 0;
  options.repeat_penalty = repeat_penalty;
  return options;
}

std::vector<Token> some_tokens(std::size_t count, std::size_t first = 0) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<Token>(((first + i) * 7919 + 13) % 300));
  return tokens;
}

/// What a driver sees: sampled tokens, and the logits of each feed on the PE that has the output.
struct Observed {
  std::vector<Token> tokens;
  std::vector<std::vector<float>> logits;
  std::vector<PeReport> reports;
};

/// The engine, and a note of what came out of it, for PE 0's part of a test.
class Driver {
 public:
  Driver(Engine& engine, Observed& observed) : engine_(engine), observed_(observed) {}
  Token feed(std::span<const Token> tokens) {
    observed_.tokens.push_back(engine_.feed(tokens));
    return observed_.tokens.back();
  }
  /// Feeds a prompt, then what it gives, `count` tokens in all.
  void generate(std::span<const Token> prompt, std::size_t count) {
    Token next = feed(prompt);
    for (std::size_t i = 1; i < count; ++i) next = feed(std::span(&next, 1));
  }
  Engine& engine() { return engine_; }

 private:
  Engine& engine_;
  Observed& observed_;
};

Observed run(const OpenModel& model, const PlanOptions& options, const SamplerOptions& sampling,
             const std::function<void(Driver&)>& drive) {
  const Plan plan = make_plan(model.file, model.config, options);
  Observed observed;
  comm::run_threads(options.pes, [&](comm::Communicator& world) {
    ThreadTeam team(options.threads);
    const Weights weights = load_shard(world, model.file, plan, team, {});
    Engine engine(world, plan, weights, team, tensor::default_kernels(), sampling);
    if (world.rank() == 0) {
      Driver driver(engine, observed);
      drive(driver);
      engine.stop();
    } else {
      engine.serve();
    }
    if (world.rank() == plan.output_pe)
      observed.logits.emplace_back(engine.last_logits().begin(), engine.last_logits().end());
    else
      EXPECT_TRUE(engine.last_logits().empty());
    const std::vector<PeReport> reports = engine.reports();
    if (world.rank() == 0) observed.reports = reports;
    world.barrier();
  });
  return observed;
}

void expect_same_bits(std::span<const float> a, std::span<const float> b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

class Outputs : public testing::TestWithParam<OutputMatrix> {};
INSTANTIATE_TEST_SUITE_P(Engine, Outputs, testing::Values(OutputMatrix::own, OutputMatrix::tied),
                         [](const auto& test) { return test.param == OutputMatrix::own ? "own" : "tied"; });

TEST_P(Outputs, LogitsAreTheSameBitsOnAnyNumberOfPes) {
  const OpenModel model(five_layers(GetParam()));
  for (const std::size_t length : {1, 3, 4, 5, 23}) {
    const std::vector<Token> prompt = some_tokens(length);
    // The reference has no engine: stages one after the other in this thread.
    const std::vector<float> expected = StageChain(model, plan_options(1)).run(prompt, false).back();
    ASSERT_TRUE(std::ranges::all_of(expected, [](float x) { return std::isfinite(x); }));
    for (const int pes : {1, 2, 3, 4, 6, 9}) {  // 9: idle PEs
      SCOPED_TRACE(testing::Message() << pes << " PEs, " << length << " tokens");
      const Observed got = run(model, plan_options(pes), greedy(), [&](Driver& d) { d.feed(prompt); });
      ASSERT_EQ(got.logits.size(), 1u);
      expect_same_bits(got.logits[0], expected);
      EXPECT_EQ(got.tokens[0], std::ranges::max_element(expected) - expected.begin());
    }
  }
}

TEST_P(Outputs, GeneratedTextIsTheSameOnAnyNumberOfPes) {
  const OpenModel model(five_layers(GetParam()));
  const auto drive = [](Driver& d) { d.generate(some_tokens(7), 40); };
  const Observed one = run(model, plan_options(1), greedy(), drive);
  EXPECT_EQ(one.tokens.size(), 40u);
  for (const int pes : {2, 3, 4, 6, 9}) {
    SCOPED_TRACE(pes);
    const Observed got = run(model, plan_options(pes), greedy(), drive);
    EXPECT_EQ(got.tokens, one.tokens);
    expect_same_bits(got.logits[0], one.logits[0]);
  }
}

TEST_P(Outputs, ARandomDrawIsTheSameOnAnyNumberOfPes) {
  const OpenModel model(five_layers(GetParam()));
  SamplerOptions sampling;
  sampling.seed = 7;
  const auto drive = [](Driver& d) { d.generate(some_tokens(5), 30); };
  const Observed one = run(model, plan_options(1), sampling, drive);
  for (const int pes : {2, 3, 6})
    EXPECT_EQ(run(model, plan_options(pes), sampling, drive).tokens, one.tokens);
  sampling.seed = 8;
  EXPECT_NE(run(model, plan_options(2), sampling, drive).tokens, one.tokens);
}

TEST_P(Outputs, TheRepetitionPenaltySeesTheWholeTextOnAnyNumberOfPes) {
  const OpenModel model(five_layers(GetParam()));
  const auto drive = [](Driver& d) { d.generate(some_tokens(6), 30); };
  const Observed one = run(model, plan_options(1), greedy(1.5), drive);
  EXPECT_NE(one.tokens, run(model, plan_options(1), greedy(), drive).tokens) << "the penalty changes nothing";
  for (const int pes : {2, 3, 4, 6, 9}) {
    SCOPED_TRACE(pes);
    EXPECT_EQ(run(model, plan_options(pes), greedy(1.5), drive).tokens, one.tokens);
  }
}

TEST_P(Outputs, ATruncatedTextContinuesAsAFreshOne) {
  const OpenModel model(five_layers(GetParam()));
  for (const double penalty : {1.0, 1.5}) {
    for (const int pes : {1, 2, 3, 6}) {
      SCOPED_TRACE(testing::Message() << pes << " PEs, penalty " << penalty);
      const Observed fresh =
          run(model, plan_options(pes), greedy(penalty), [](Driver& d) { d.generate(some_tokens(14), 6); });
      const Observed cut = run(model, plan_options(pes), greedy(penalty), [](Driver& d) {
        d.feed(some_tokens(9));
        d.feed(some_tokens(20, 100));
        d.engine().truncate(9);
        EXPECT_EQ(d.engine().position(), 9);
        d.generate(some_tokens(5, 9), 6);
      });
      EXPECT_EQ(std::vector<Token>(cut.tokens.begin() + 2, cut.tokens.end()), fresh.tokens);
      expect_same_bits(cut.logits[0], fresh.logits[0]);
      const Observed again = run(model, plan_options(pes), greedy(penalty), [](Driver& d) {
        d.feed(some_tokens(20, 100));
        d.engine().truncate(0);
        d.generate(some_tokens(14), 6);
      });
      EXPECT_EQ(std::vector<Token>(again.tokens.begin() + 1, again.tokens.end()), fresh.tokens);
      expect_same_bits(again.logits[0], fresh.logits[0]);
    }
  }
}

TEST_P(Outputs, TruncationsAndLongPromptsFollowEachOtherWithoutPause) {
  // Nothing here waits for an answer between messages, so all the waiting is flow control.
  const OpenModel model(five_layers(GetParam()));
  const Observed fresh =
      run(model, plan_options(1), greedy(), [](Driver& d) { d.generate(some_tokens(50), 2); });
  for (const int pes : {2, 3, 4, 6, 9}) {
    SCOPED_TRACE(pes);
    const Observed got = run(model, plan_options(pes), greedy(), [](Driver& d) {
      for (int round = 0; round < 20; ++round) {
        d.feed(some_tokens(1 + static_cast<std::size_t>(round) * 3));
        for (int i = 0; i < round % 5; ++i) d.engine().truncate(d.engine().position() / 2);
        d.engine().truncate(0);
      }
      d.generate(some_tokens(50), 2);
      for (int i = 0; i < 7; ++i) d.engine().truncate(0);  // and stop() right behind
    });
    EXPECT_EQ(std::vector<Token>(got.tokens.end() - 2, got.tokens.end()), fresh.tokens);
    expect_same_bits(got.logits[0], fresh.logits[0]);
  }
}

TEST_P(Outputs, SeveralPromptsInARowAreOneText) {
  const OpenModel model(five_layers(GetParam()));
  const std::vector<Token> text = some_tokens(30);
  const std::vector<float> expected = StageChain(model, plan_options(1)).run(text, false).back();
  for (const int pes : {1, 2, 3, 6}) {
    SCOPED_TRACE(pes);
    const Observed got = run(model, plan_options(pes), greedy(), [&](Driver& d) {
      std::size_t at = 0;
      for (const std::size_t length : {9, 1, 1, 4, 15}) {
        d.feed(std::span(text).subspan(at, length));
        at += length;
        EXPECT_EQ(d.engine().position(), static_cast<std::int64_t>(at));
      }
      EXPECT_EQ(at, text.size());
    });
    expect_same_bits(got.logits[0], expected);
  }
}

// --- what travels ---

TEST_P(Outputs, OneMessageAHopForEachChunkAndEachToken) {
  const OpenModel model(five_layers(GetParam()));
  constexpr std::uint64_t answers = 25;
  constexpr std::uint64_t prompt_chunks = 6;                            // 23 tokens by 4
  constexpr std::uint64_t per_hop = prompt_chunks + (answers - 1) + 1;  // and the stop
  for (const int pes : {1, 2, 3, 4, 6, 9}) {
    SCOPED_TRACE(pes);
    const Plan plan = make_plan(model.file, model.config, plan_options(pes));
    const Observed got =
        run(model, plan_options(pes), greedy(), [](Driver& d) { d.generate(some_tokens(23), answers); });
    ASSERT_EQ(got.reports.size(), static_cast<std::size_t>(pes));
    for (const PeReport& report : got.reports) {
      std::uint64_t expected = 0;
      const auto place = std::ranges::find(plan.pipeline, report.pe);
      if (place != plan.pipeline.end() && plan.pipeline.size() > 1)
        expected = place + 1 == plan.pipeline.end() ? answers : per_hop;
      EXPECT_EQ(report.messages, expected) << "PE " << report.pe;
      EXPECT_EQ(report.sent_bytes > 0, expected > 0);
    }
  }
}

TEST_P(Outputs, ReportsTellWhatThePlanGave) {
  const OpenModel model(five_layers(GetParam()));
  const Plan plan = make_plan(model.file, model.config, plan_options(9));
  const Observed got =
      run(model, plan_options(9), greedy(), [](Driver& d) { d.generate(some_tokens(5), 3); });
  ASSERT_EQ(got.reports.size(), 9u);
  int idle = 0;
  for (const PePlan& pe : plan.pes) {
    const PeReport& report = got.reports[static_cast<std::size_t>(pe.pe)];
    EXPECT_EQ(report.pe, pe.pe);
    EXPECT_EQ(report.layer_begin, pe.layer_begin);
    EXPECT_EQ(report.layer_end, pe.layer_end);
    EXPECT_EQ(report.has_embedding != 0, pe.has_embedding);
    EXPECT_EQ(report.has_output != 0, pe.has_output);
    EXPECT_EQ(report.idle != 0, pe.idle());
    EXPECT_EQ(report.compute_s > 0, !pe.idle());
    EXPECT_GE(report.memory_bytes, pe.weight_bytes + pe.kv_bytes);
    EXPECT_LE(report.memory_bytes, pe.total_bytes());
    EXPECT_FALSE(report.host.empty());
    idle += report.idle;
  }
  EXPECT_GE(idle, 3);
}

TEST(Engine, StopsWithoutHavingWorked) {
  const OpenModel model(five_layers());
  for (const int pes : {1, 2, 6, 9}) {
    const Observed got = run(model, plan_options(pes), greedy(), [](Driver&) {});
    EXPECT_EQ(got.reports.size(), static_cast<std::size_t>(pes));
  }
}

TEST(Engine, SymmetricMemoryIsWhatThePlanSays) {
  const OpenModel model(five_layers());
  for (const int pes : {1, 3, 9}) {
    const Plan plan = make_plan(model.file, model.config, plan_options(pes));
    EXPECT_EQ(Engine::symmetric_bytes(plan), plan.pes.back().segment_bytes);
  }
}

// --- the edges ---

std::string error_of(const std::function<void()>& call, ErrorCode code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(Engine, AFullContextRefusesAndStaysUsable) {
  const OpenModel model(five_layers());
  for (const int pes : {1, 2, 6}) {
    SCOPED_TRACE(pes);
    run(model, plan_options(pes), greedy(), [](Driver& d) {
      EXPECT_EQ(d.engine().context(), context);
      EXPECT_NE(error_of([&] { d.feed(some_tokens(context + 1)); }, ErrorCode::out_of_memory), "accepted");
      EXPECT_EQ(d.engine().position(), 0);
      d.feed(some_tokens(context));
      const std::string full = error_of([&] { d.feed(some_tokens(1)); }, ErrorCode::out_of_memory);
      EXPECT_NE(full.find("64 positions"), std::string::npos) << full;
      EXPECT_NE(error_of([&] { d.feed({}); }, ErrorCode::invalid_argument), "accepted");
      EXPECT_NE(error_of([&] { d.engine().truncate(context + 1); }, ErrorCode::invalid_argument), "accepted");
      EXPECT_NE(error_of([&] { d.engine().truncate(-1); }, ErrorCode::invalid_argument), "accepted");
      d.engine().truncate(60);
      d.feed(some_tokens(4));
      EXPECT_EQ(d.engine().position(), context);
    });
  }
}

TEST(Engine, ATokenOutsideTheVocabularyIsRefused) {
  const OpenModel model(five_layers());
  for (const int pes : {1, 3}) {
    for (const Token token : {Token{300}, Token{-1}}) {
      const std::string message = error_of(
          [&] { run(model, plan_options(pes), greedy(), [&](Driver& d) { d.feed(std::span(&token, 1)); }); },
          ErrorCode::invalid_argument);
      EXPECT_NE(message.find(std::to_string(token)), std::string::npos) << message;
    }
  }
}

/// A model in which the embedding of one token is not finite.
OpenModel model_with_bad_token(Token bad, OutputMatrix output) {
  RandomModelOptions options = five_layers(output);
  std::vector<float> embedding(300 * 64);
  for (std::size_t i = 0; i < embedding.size(); ++i)
    embedding[i] = static_cast<float>(i * 2654435761u % 1000) * 0.002f - 1.0f;
  embedding[static_cast<std::size_t>(bad) * 64 + 5] = std::numeric_limits<float>::quiet_NaN();
  test::TemporaryFolder folder;
  const std::string path = folder.file("bad.gguf");
  GgufWriter writer = random_model(options);
  writer.remove_tensor("token_embd.weight");
  writer.add_tensor("token_embd.weight", {64, 300}, tensor::Format::f32, embedding);
  writer.write(path);
  return OpenModel(path);  // headers are read, and the open file outlives its name
}

TEST(Engine, NonFiniteLogitsNameThePosition) {
  const Token bad = 299;
  const OpenModel model = model_with_bad_token(bad, OutputMatrix::own);
  for (const int pes : {1, 2, 3, 6, 9}) {
    SCOPED_TRACE(pes);
    const std::string message = error_of(
        [&] {
          run(model, plan_options(pes), greedy(), [&](Driver& d) {
            std::vector<Token> prompt(11, 5);
            d.feed(prompt);
            d.feed(std::span(&bad, 1));  // at position 11, so that of the token to come is 12
            ADD_FAILURE() << "a token was sampled from logits that are not finite";
          });
        },
        ErrorCode::numeric);
    EXPECT_NE(message.find("non-finite logits at position 12"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace shoal::infer
