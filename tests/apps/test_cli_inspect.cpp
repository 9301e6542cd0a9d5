// SPDX-License-Identifier: Apache-2.0
// The commands that look and start nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "apps/process.h"
#include "infer/model_fixture.h"
#include "shoal/infer/random_model.h"

namespace shoal::test {
namespace {

using nlohmann::json;

std::string output_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), shoal_program());
  const Outcome outcome = run({.line = arguments, .limit_s = 20});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(outcome.out.ends_with('\n')) << outcome.describe();
  return outcome.out;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Inspect : public testing::Test {
 protected:
  Inspect() {
    infer::RandomModelOptions options;
    options.layers = 5;
    model = infer::write_random_model(folder.file("five.gguf"), options)[0];
  }
  infer::test::TemporaryFolder folder;
  std::string model;
};

TEST_F(Inspect, VersionAndHelp) {
  EXPECT_TRUE(output_of({"--version"}).starts_with("shoal "));
  const std::string help = output_of({"--help"});
  for (const char* command : {"run", "plan", "info", "doctor"}) EXPECT_TRUE(has(help, command)) << help;
  const std::string run_help = output_of({"run", "--help"});
  for (const char* option : {"--model", "--prompt", "--pes", "--transport", "--threads", "--predict", "--ctx",
                             "--temp", "--seed", "--file", "--chat", "--json", "--memory"})
    EXPECT_TRUE(has(run_help, option)) << option;
}

TEST_F(Inspect, APlanGivesEachLayerToOnePe) {
  for (const int pes : {1, 2, 3, 5, 6, 9, 64}) {
    SCOPED_TRACE(pes);
    const json plan =
        json::parse(output_of({"plan", model, "-n", std::to_string(pes), "--json", "--ctx", "100"}));
    ASSERT_EQ(plan["pes"].size(), static_cast<std::size_t>(pes));
    EXPECT_EQ(plan["layers"], 5);
    EXPECT_EQ(plan["context"], 100);
    int next_layer = 0, idle = 0, outputs = 0;
    for (const json& pe : plan["pes"]) {
      if (pe["layer_end"] > pe["layer_begin"]) {
        EXPECT_EQ(pe["layer_begin"], next_layer);
        next_layer = pe["layer_end"];
      }
      idle += pe["idle"].get<bool>();
      outputs += pe["output"].get<bool>();
      EXPECT_EQ(pe["total_bytes"].get<std::int64_t>(),
                pe["weight_bytes"].get<std::int64_t>() + pe["kv_bytes"].get<std::int64_t>() +
                    pe["scratch_bytes"].get<std::int64_t>() + pe["segment_bytes"].get<std::int64_t>());
    }
    EXPECT_EQ(next_layer, 5);
    EXPECT_EQ(outputs, 1);
    EXPECT_TRUE(plan["pes"][0]["embedding"].get<bool>());
    EXPECT_EQ(idle > 0, pes > 7);
    const std::string table = output_of({"plan", model, "-n", std::to_string(pes), "--ctx", "100"});
    EXPECT_GE(std::ranges::count(table, '\n'), pes);
    EXPECT_EQ(has(table, "idle"), pes > 7) << table;
  }
}

TEST_F(Inspect, APlanFollowsTheMemoryOfEachPe) {
  const json plan = json::parse(output_of({"plan", model, "-n", "3", "--memory", "1G,10M,0", "--json"}));
  EXPECT_TRUE(plan["pes"][2]["idle"].get<bool>());
  const Outcome refused = run({.line = {shoal_program(), "plan", model, "-n", "2", "--memory", "1M"}});
  ASSERT_GT(refused.exit_code, 0) << refused.describe();
  // The refusal says on how many PEs it fits, and there it does fit.
  const std::size_t at = refused.err.rfind(" PEs");
  ASSERT_NE(at, std::string::npos) << refused.describe();
  const std::string number = refused.err.substr(refused.err.rfind(' ', at - 1) + 1, at);
  const int enough = std::stoi(number);
  EXPECT_GT(enough, 2);
  output_of({"plan", model, "-n", std::to_string(enough), "--memory", "1M"});
}

TEST_F(Inspect, InfoShowsWhatIsInAFile) {
  const std::string text = output_of({"info", model});
  for (const char* part : {"llama", "token_embd.weight", "blk.4.ffn_down.weight", "F32"})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  const json info = json::parse(output_of({"info", model, "--json"}));
  EXPECT_TRUE(info.is_object());
  EXPECT_TRUE(has(info.dump(), "blk.4.ffn_down.weight"));
}

TEST_F(Inspect, DoctorTellsWhichTransportsWork) {
  const json doctor = json::parse(output_of({"doctor", "--json"}));
  EXPECT_EQ(doctor["auto"], "threads");
  EXPECT_EQ(doctor["launcher"], "");
  std::set<std::string> names;
  for (const json& transport : doctor["transports"]) {
    names.insert(transport["name"].get<std::string>());
    EXPECT_FALSE(transport["detail"].get<std::string>().empty());
    if (transport["name"] == "threads")
      EXPECT_TRUE(transport["available"].get<bool>());
    else
      EXPECT_FALSE(transport["package"].get<std::string>().empty());
  }
  EXPECT_EQ(names, (std::set<std::string>{"mpi", "shmem", "threads"}));
  EXPECT_TRUE(has(output_of({"doctor"}), "threads"));
}

TEST_F(Inspect, DoctorSaysWhichPackageBringsWhatIsMissing) {
  const Outcome outcome =
      run({.line = {shoal_program(), "doctor"}, .environment = {{"SHOAL_MODULE_PATH", folder.file("")}}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  EXPECT_TRUE(has(outcome.out, "missing")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "apt-get install openmpi-bin")) << outcome.out;
  const Outcome refused =
      run({.line = {shoal_program(), "run", "-m", model, "-p", "x", "-n", "2", "--transport", "mpi"},
           .environment = {{"SHOAL_MODULE_PATH", folder.file("")}}});
  EXPECT_GT(refused.exit_code, 0);
  EXPECT_TRUE(refused.err.starts_with("shoal: transport mpi is not available")) << refused.describe();
  EXPECT_TRUE(has(refused.err, "openmpi-bin")) << refused.err;
}

}  // namespace
}  // namespace shoal::test
