// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>

#include "comm/property.h"
#include "comm/resident_bytes.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::comm::property {
namespace {

constexpr std::uint64_t scripts = sanitized ? 10 : 100;  // a sanitizer multiplies the time

/// What went wrong with a script on threads; nothing if all was right.
std::optional<std::string> failure(const Script& script, const Spoil& spoil = {}) {
  try {
    run_threads(script.ranks, [&](Communicator& world) { run(world, script, spoil); });
  } catch (const std::exception& error) {
    return error.what();
  }
  return std::nullopt;
}

std::string report(const Script& script, const Spoil& spoil = {}) {
  const auto fails = [&](const Script& candidate) { return failure(candidate, spoil).has_value(); };
  const Script small = shrink(script, fails);
  return failure(small, spoil).value_or("not every time") + "\n" + print(small) + "drawn as\n" +
         print(script);
}

// Where the ranks are: all on one host, or as if on several, which changes the algorithms.
class Scripts : public testing::TestWithParam<const char*> {
 public:
  void SetUp() override { setenv("SHOAL_FAKE_HOSTS", GetParam(), 1); }
  void TearDown() override { unsetenv("SHOAL_FAKE_HOSTS"); }
};

TEST_P(Scripts, GiveWhatTheModelGives) {
  for (std::uint64_t seed = 0; seed < scripts; ++seed) {
    const Script script = draw(seed, 8);
    if (failure(script)) FAIL() << report(script);
  }
}
INSTANTIATE_TEST_SUITE_P(Property, Scripts, testing::Values("1", "2", "3,interleaved", "8"));

// One wrong byte in one kind of result is found, and the script is brought down to what is needed for it.
TEST(Property, AWrongResultIsFoundAndMadeSmall) {
  const Spoil spoil = [](const Step& step, Rank rank, std::vector<std::byte>& result) {
    if (step.pattern == Pattern::all_gather && rank == 1 && !result.empty()) result.back() ^= std::byte{1};
  };
  int found = 0;
  for (std::uint64_t seed = 0; found < 3; ++seed) {
    ASSERT_LT(seed, 200u) << "no script has an all_gather";
    const Script script = draw(seed, 4);
    if (!failure(script, spoil)) continue;
    ++found;
    const auto fails = [&](const Script& candidate) { return failure(candidate, spoil).has_value(); };
    const Script small = shrink(script, fails);
    ASSERT_EQ(small.steps.size(), 1u) << print(small);
    EXPECT_EQ(small.steps[0].pattern, Pattern::all_gather);
    EXPECT_EQ(small.steps[0].lifetime, 0);
    const std::vector<std::int64_t>& counts = small.steps[0].counts;
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), 1) << print(small);
    EXPECT_EQ(small.ranks, 2);
    EXPECT_FALSE(failure(small)) << "it was the spoiled result";
  }
}

TEST(Property, AScriptIsReadable) {
  Script script{7, 3, {}};
  script.steps.push_back({.id = 0, .creates = NewCommunicator{.divisor = 2, .reversed = true}});
  script.steps.push_back({.id = 4,
                          .pattern = Pattern::reduce,
                          .communicator = 1,
                          .dtype = DType::float16,
                          .reduction = Reduction::max,
                          .root = 2,
                          .counts = {5, 0},
                          .in_place = true,
                          .lifetime = 3});
  EXPECT_EQ(print(script),
            "seed 7, 3 ranks\n"
            "   0  c1 = c0.split(rank % 2, -rank)\n"
            "   4  c1.reduce float16 counts {5, 0}, max, root 2, in place, waited for 3 steps later\n");
}

}  // namespace
}  // namespace shoal::comm::property
