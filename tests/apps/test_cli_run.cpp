// SPDX-License-Identifier: Apache-2.0
// The same greedy text from a model however it is split and whichever way the job is started.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/process.h"

namespace shoal::test {
namespace {

using nlohmann::json;

struct Generated {
  std::vector<int> tokens;
  json report;
};

/// Runs `shoal run --json ARGUMENTS` on `pes` PEs; fails the test when that does not end well.
Generated generate(const std::string& how, int pes, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"run", "--json", "--temp", "0", "--threads", "1"});
  const Outcome outcome = run({.line = job_line(how, pes, arguments)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  EXPECT_EQ(outcome.err, "") << "a run that ends well and prints JSON is silent otherwise";
  Generated generated;
  generated.report = json::parse(outcome.out, nullptr, false);
  if (generated.report.is_discarded() || !generated.report.contains("tokens"))
    ADD_FAILURE() << "not the JSON of a run\n" << outcome.describe();
  else
    generated.tokens = generated.report["tokens"].get<std::vector<int>>();
  return generated;
}

std::string transport_of(const std::string& how) {
  if (how.starts_with("mpirun")) return "mpi";
  return how == "oshrun" ? "shmem" : how;
}

class EveryWay : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_way(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  }
};
INSTANTIATE_TEST_SUITE_P(Run, EveryWay,
                         testing::Values("threads", "mpi", "shmem", "mpirun.openmpi", "mpirun.mpich",
                                         "oshrun"),
                         [](const auto& test) {
                           std::string name = test.param;
                           if (const auto dot = name.find('.'); dot != std::string::npos) name[dot] = '_';
                           return name;
                         });

TEST_P(EveryWay, TellsTheKnownStory) {
  const std::string model = data_model("stories260K.gguf");
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "no test data: " << model;
  std::ifstream file(data_model("stories260K.expected.json"));
  const json expected = json::parse(file);
  // Called directly, Open MPI's launchers start what shoal starts by them; MPICH's is tried here alone.
  const bool again = GetParam() == "mpirun.openmpi" || GetParam() == "oshrun";
  for (const int pes : again ? std::vector{1, 3} : std::vector{1, 2, 3, 4, 6}) {
    SCOPED_TRACE(pes);
    const Generated got = generate(
        GetParam(), pes, {"-m", model, "-p", expected["prompt"].get<std::string>(), "--predict", "100"});
    EXPECT_EQ(got.tokens, expected["greedy_ids"].get<std::vector<int>>());
    if (HasFailure()) return;
    EXPECT_EQ(got.report["prompt_tokens"], expected["prompt_ids"].size());
    EXPECT_EQ(got.report["finish"], "length");
    EXPECT_EQ(got.report["transport"], transport_of(GetParam()));
    ASSERT_EQ(got.report["pes"].size(), static_cast<std::size_t>(pes));
    // One message for the prompt, for each further token, and for the end, on each hop.
    for (std::size_t pe = 0; pe < static_cast<std::size_t>(pes); ++pe)
      EXPECT_EQ(got.report["pes"][pe]["messages"], pes == 1                                 ? 0
                                                   : pe + 1 < static_cast<std::size_t>(pes) ? 101
                                                                                            : 100);
  }
}

class EveryTransport : public EveryWay {};
INSTANTIATE_TEST_SUITE_P(Run, EveryTransport, testing::Values("threads", "mpi", "shmem"),
                         [](const auto& test) { return test.param; });

TEST_P(EveryTransport, ALargerModelGivesTheSame100TokensOnAnyNumberOfPes) {
  const std::string model = large_model();
  if (model.empty()) GTEST_SKIP() << "no model: SHOAL_TEST_MODEL names no file";
  const std::vector<std::string> arguments = {
      "-m", model, "-p", "Once upon a time", "--predict", "100", "--ignore-end", "--ctx", "512"};
  const Generated one = generate("threads", 1, arguments);
  ASSERT_EQ(one.tokens.size(), 100u);
  for (const int pes : {1, 2, 3, 4, 6}) {
    if (pes == 1 && GetParam() == "threads") continue;
    SCOPED_TRACE(pes);
    EXPECT_EQ(generate(GetParam(), pes, arguments).tokens, one.tokens);
  }
}

TEST_P(EveryTransport, ALongPromptFromAFileGivesTheSameOnAnyNumberOfPes) {
  const std::string model = data_model("stories260K.gguf");
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "no test data: " << model;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("shoal-cli-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = (folder / "prompt.txt").string();
  {
    std::ofstream text(path);
    for (int i = 0; i < 30; ++i) text << "Lily and her cat went to the park. ";
  }
  const std::vector<std::string> arguments = {"-m", model,       "--file", path,   "--chunk",
                                              "16", "--predict", "40",     "--kv", "f32"};
  const Generated one = generate("threads", 1, arguments);
  EXPECT_GT(one.report["prompt_tokens"], 300);
  EXPECT_EQ(generate(GetParam(), 4, arguments).tokens, one.tokens);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace shoal::test
