// SPDX-License-Identifier: Apache-2.0
// Sampling: greedy ties, extreme temperatures, filters, frequencies, and what is refused.
#include "shoal/infer/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// No filter: the softmax of the logits as it is.
SamplerOptions plain(double temperature) {
  return {.temperature = temperature, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 42};
}

Token sample(const SamplerOptions& options, std::vector<float> logits, std::int64_t position = 0) {
  return Sampler(options).sample(logits, position);
}

/// How often each token comes over `draws` positions.
std::map<Token, int> histogram(const SamplerOptions& options, const std::vector<float>& logits, int draws) {
  Sampler sampler(options);
  std::map<Token, int> counts;
  for (int position = 0; position < draws; ++position) {
    std::vector<float> copy = logits;
    ++counts[sampler.sample(copy, position)];
  }
  return counts;
}

std::string refusal(const SamplerOptions& options) {
  try {
    Sampler sampler(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(Sampler, ZeroAndTinyTemperaturesTakeTheLargest) {
  for (const double temperature : {0.0, 1e-5, 1e-30, 1e-300})
    for (std::int64_t position = 0; position < 50; ++position)
      EXPECT_EQ(sample(plain(temperature), {11.0625f, 2.9f, 2.8f}, position), 0) << temperature;
  for (const double temperature : {0.0, 1e-5, 1e-30})
    EXPECT_EQ(sample(plain(temperature), {-3.0f, 2.0f, 1.9f}), 1) << temperature;
}

TEST(Sampler, GreedyTakesTheLowestIdOnTies) {
  EXPECT_EQ(sample({.temperature = 0}, {1, 1}), 0);
  EXPECT_EQ(sample({.temperature = 0}, {0, 1, 3, 3, 3}), 2);
  EXPECT_EQ(sample({.temperature = 0}, {-inf, -7, -inf, -7}), 1);
  EXPECT_EQ(sample({.temperature = 1, .top_k = 1}, {0, 1, 3, 3, 3}), 2);
}

TEST(Sampler, NonFiniteLogitsAreReportedWithTheirPosition) {
  for (const double temperature : {0.0, 1.0})
    for (const std::vector<float>& logits : std::vector<std::vector<float>>{
             {nan, 1, 2}, {1, nan, 2}, {1, 2, nan}, {1, inf, 2}, {-inf, -inf, -inf}, {nan, nan, nan}, {}}) {
      try {
        sample(plain(temperature), logits, 17);
        ADD_FAILURE() << "accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::numeric);
        EXPECT_STREQ(error.what(), "non-finite logits at position 17");
      }
    }
}

TEST(Sampler, BannedTokensNeverCome) {
  const auto counts = histogram(plain(2.0), {-inf, 1, -inf, 1.5f}, 500);
  EXPECT_EQ(counts.count(0) + counts.count(2), 0u);
  EXPECT_EQ(counts.size(), 2u);
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  const std::vector<float> logits = {0.0f, 1.0f, -1.0f, 0.5f};
  const double temperature = 0.7;
  constexpr int draws = 20000;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit / temperature);
  const auto counts = histogram(plain(temperature), logits, draws);
  for (const auto& [token, count] : counts) {
    const double p = std::exp(logits[static_cast<std::size_t>(token)] / temperature) / sum;
    EXPECT_NEAR(count, p * draws, 5 * std::sqrt(p * (1 - p) * draws)) << token;
  }
  EXPECT_EQ(counts.size(), logits.size());
}

TEST(Sampler, TopKKeepsTheLargestAndLowestIds) {
  SamplerOptions options = plain(100.0);  // nearly uniform over what is kept
  options.top_k = 3;
  const auto counts = histogram(options, {1, 5, 2, 4, 2, 2, 3}, 400);
  ASSERT_EQ(counts.size(), 3u);
  for (const Token token : {1, 3, 6}) EXPECT_TRUE(counts.contains(token)) << token;
  options.top_k = 4;  // three tie for the last place
  EXPECT_TRUE(histogram(options, {1, 5, 2, 4, 2, 2, 3}, 400).contains(2));
  EXPECT_FALSE(histogram(options, {1, 5, 2, 4, 2, 2, 3}, 400).contains(4));
  options.top_k = 100;  // more than there are
  EXPECT_EQ(histogram(options, {1, 5, 2, 4, 2, 2, 3}, 400).size(), 7u);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  // Probabilities 0.5, 0.3, 0.15, 0.05.
  const std::vector<float> logits = {std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};
  SamplerOptions options = plain(1.0);
  const std::pair<double, std::size_t> kept[] = {{0.4, 1}, {0.6, 2}, {0.9, 3}, {0.97, 4}, {1.0, 4}};
  for (const auto& [top_p, size] : kept) {
    options.top_p = top_p;
    EXPECT_EQ(histogram(options, logits, 1000).size(), size) << top_p;
  }
}

TEST(Sampler, TopPSelectsFromManyAsASortWould) {
  // More than one group of the partial sort: 5,000 logits, a flat distribution.
  std::vector<float> logits(5000);
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>((i * 7919) % logits.size()) / 5000.0f;
  SamplerOptions options = plain(1.0);
  options.top_p = 0.5;
  std::vector<float> sorted = logits;
  std::ranges::sort(sorted, std::greater<>());
  double all = 0;
  for (const float logit : sorted) all += std::exp(double{logit});
  double kept = 0;
  std::size_t size = 0;
  while (kept < 0.5 * all) kept += std::exp(double{sorted[size++]});
  float weakest = inf;
  for (const auto& [token, count] : histogram(options, logits, 600))
    weakest = std::min(weakest, logits[static_cast<std::size_t>(token)]);
  EXPECT_GE(weakest, sorted[size - 1]);
  EXPECT_LT(weakest, sorted[size - 1] + 0.01f);  // the whole kept range is drawn from
}

TEST(Sampler, MinPDropsWhatIsFarLessLikely) {
  const std::vector<float> logits = {0.0f, std::log(0.2f), std::log(0.09f)};
  SamplerOptions options = plain(1.0);
  options.min_p = 0.1;
  EXPECT_EQ(histogram(options, logits, 1000).size(), 2u);
  options.min_p = 0.05;
  EXPECT_EQ(histogram(options, logits, 1000).size(), 3u);
  options.min_p = 1.0;
  EXPECT_EQ(histogram(options, logits, 100).size(), 1u);
}

TEST(Sampler, TheSameSeedAndPositionGiveTheSameToken) {
  const std::vector<float> logits(1000, 0.25f);
  Sampler forward(plain(1.0));
  Sampler backward(plain(1.0));
  std::vector<Token> tokens(50);
  std::vector<float> copy = logits;
  for (std::int64_t p = 0; p < 50; ++p) tokens[static_cast<std::size_t>(p)] = forward.sample(copy, p);
  for (std::int64_t p = 49; p >= 0; --p)
    EXPECT_EQ(backward.sample(copy, p), tokens[static_cast<std::size_t>(p)]) << p;
  SamplerOptions other = plain(1.0);
  other.seed = 43;
  int equal = 0;
  for (std::int64_t p = 0; p < 50; ++p)
    equal += sample(other, logits, p) == tokens[static_cast<std::size_t>(p)] ? 1 : 0;
  EXPECT_LT(equal, 5);
  // Fixed for ever, so that a seed means the same on every machine and in every version.
  EXPECT_EQ((std::vector<Token>(tokens.begin(), tokens.begin() + 4)),
            (std::vector<Token>{343, 955, 486, 67}));
}

TEST(Sampler, RepetitionPenaltyWeakensTheWindowOnce) {
  Sampler sampler({.temperature = 0, .repeat_penalty = 2.0, .repeat_window = 2});
  for (const Token token : {0, 1, 2, 2}) sampler.accept(token);  // the window holds 2, 2
  std::vector<float> logits = {1.0f, -1.0f, 3.0f, 1.4f};
  EXPECT_EQ(sampler.sample(logits, 4), 2);
  EXPECT_EQ(logits, (std::vector<float>{1.0f, -1.0f, 1.5f, 1.4f}));
  sampler.accept(1);
  logits = {-5.0f, -1.0f, 2.0f, 1.4f};
  EXPECT_EQ(sampler.sample(logits, 5), 3);
  EXPECT_EQ(logits, (std::vector<float>{-5.0f, -2.0f, 1.0f, 1.4f}));
}

TEST(Sampler, OptionsThatMakeNoSenseAreNamed) {
  EXPECT_EQ(refusal({.temperature = -1}), "temperature must be 0 or a positive number, not -1");
  EXPECT_NE(refusal({.temperature = std::nan("")}).find("temperature"), std::string::npos);
  EXPECT_NE(refusal({.temperature = INFINITY}).find("temperature"), std::string::npos);
  EXPECT_NE(refusal({.top_k = -1}).find("top_k"), std::string::npos);
  EXPECT_NE(refusal({.top_p = 0}).find("top_p"), std::string::npos);
  EXPECT_NE(refusal({.top_p = 1.01}).find("top_p"), std::string::npos);
  EXPECT_NE(refusal({.min_p = -0.1}).find("min_p"), std::string::npos);
  EXPECT_NE(refusal({.repeat_penalty = 0}).find("repeat_penalty"), std::string::npos);
  EXPECT_NE(refusal({.repeat_window = -1}).find("repeat_window"), std::string::npos);
  EXPECT_EQ(refusal({}), "accepted");
}

}  // namespace
}  // namespace shoal::infer
