// SPDX-License-Identifier: Apache-2.0
// No process of a job takes more memory than its plan says, but for the libraries that it loads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/process.h"
#include "infer/model_fixture.h"
#include "shoal/infer/random_model.h"

namespace shoal::test {
namespace {

using nlohmann::json;

constexpr int pes = 4;
constexpr std::int64_t libraries = 60'000'000;  // bytes above the plan

class Memory : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Peak, Memory, testing::Values("mpirun.openmpi", "mpirun.mpich", "oshrun"),
                         [](const auto& test) {
                           std::string name = test.param;
                           if (const auto dot = name.find('.'); dot != std::string::npos) name[dot] = '_';
                           return name;
                         });

TEST_P(Memory, OfEachProcessIsThatOfItsPlan) {
  if (const std::string missing = missing_way(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  infer::test::TemporaryFolder folder;
  infer::RandomModelOptions options;  // 420 MB
  options.layers = 16;
  options.width = 2048;
  options.ffn_width = 5632;
  options.heads = 32;
  options.kv_heads = 4;
  options.vocabulary = 8000;
  options.context = 2048;
  options.format = tensor::Format::q4_0;
  const std::string model = infer::write_random_model(folder.file("large.gguf"), options)[0];

  const Outcome planned =
      run({.line = {shoal_program(), "plan", model, "-n", std::to_string(pes), "--ctx", "512", "--json"}});
  ASSERT_EQ(planned.exit_code, 0) << planned.describe();
  std::string prompt;
  for (int i = 0; i < 60; ++i) prompt += "time and again ";
  std::vector<std::string> line = job_line(
      GetParam(), pes,
      {"run", "-m", model, "-p", prompt, "--predict", "8", "--threads", "1", "--ctx", "512", "--json"});
  const std::string prefix = folder.file("peak");
  line.insert(std::ranges::find(line, shoal_program()), {MEASURE_MEMORY, prefix});
  const Outcome outcome = run({.line = line});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.describe();

  const json plan = json::parse(planned.out);
  for (int pe = 0; pe < pes; ++pe) {
    const auto total = plan["pes"][static_cast<std::size_t>(pe)]["total_bytes"].get<std::int64_t>();
    std::int64_t peak = 0;
    std::ifstream(prefix + "." + std::to_string(pe)) >> peak;
    std::printf("PE %d: planned %.1f MB, peak %.1f MB, above the plan %.1f MB\n", pe,
                static_cast<double>(total) * 1e-6, static_cast<double>(peak) * 1e-6,
                static_cast<double>(peak - total) * 1e-6);
    EXPECT_LE(peak, total + libraries) << "PE " << pe;
    // Weights are held, not mapped: a peak far below would mean that something else was measured.
    EXPECT_GT(peak, plan["pes"][static_cast<std::size_t>(pe)]["weight_bytes"].get<std::int64_t>())
        << "PE " << pe;
  }
}

}  // namespace
}  // namespace shoal::test
