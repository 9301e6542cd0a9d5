// SPDX-License-Identifier: Apache-2.0
// shoal bench comm: that its figures can be read and are about the right thing, not how large they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "apps/process.h"
#include "bench_cases.h"
#include "bench_statistics.h"
#include "infer/model_fixture.h"
#include "shoal/base/error.h"

namespace shoal::test {
namespace {

using nlohmann::json;

TEST(BenchStatistics, QuartilesOfFewValues) {
  const app::Quartiles one = app::quartiles({3});
  EXPECT_EQ(one.low, 3);
  EXPECT_EQ(one.median, 3);
  EXPECT_EQ(one.high, 3);
  EXPECT_EQ(one.spread(), 0);
  const app::Quartiles two = app::quartiles({4, 2});
  EXPECT_DOUBLE_EQ(two.low, 2.5);
  EXPECT_DOUBLE_EQ(two.median, 3);
  EXPECT_DOUBLE_EQ(two.high, 3.5);
  EXPECT_THROW(app::quartiles({}), Error);
}

TEST(BenchStatistics, QuartilesLieBetweenTheNearestValues) {
  const app::Quartiles five = app::quartiles({50, 10, 40, 20, 30});
  EXPECT_DOUBLE_EQ(five.low, 20);
  EXPECT_DOUBLE_EQ(five.median, 30);
  EXPECT_DOUBLE_EQ(five.high, 40);
  EXPECT_DOUBLE_EQ(five.spread(), 20.0 / 30.0);
  const app::Quartiles four = app::quartiles({1, 2, 3, 1000});
  EXPECT_DOUBLE_EQ(four.low, 1.75);
  EXPECT_DOUBLE_EQ(four.median, 2.5);
  EXPECT_DOUBLE_EQ(four.high, 252.25);
}

// A machine that becomes five times slower half way changes the medians, but not the ratio.
TEST(BenchStatistics, RatiosAreOfPairs) {
  const std::vector<double> a = {1, 1, 1, 5, 5}, b = {2, 2, 2, 10, 10};
  const app::Quartiles ratio = app::paired_ratio(a, b);
  EXPECT_DOUBLE_EQ(ratio.low, 0.5);
  EXPECT_DOUBLE_EQ(ratio.median, 0.5);
  EXPECT_DOUBLE_EQ(ratio.high, 0.5);
  const std::vector<double> c = {1, 2, 3}, d = {1, 1, 1, 1};
  EXPECT_DOUBLE_EQ(app::paired_ratio(c, {d.data(), 3}).median, 2);
  EXPECT_THROW(app::paired_ratio(c, d), Error);
}

// What a pattern must leave behind is not there yet when the operands have just been filled in.
TEST(BenchCases, ACallThatDoesNothingIsFoundOut) {
  constexpr int ranks = 3;
  for (const std::string& pattern : app::bench_patterns()) {
    const app::BenchCase bench_case{pattern, app::without_size(pattern) ? 0u : 20u};
    int complaints = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<float> send(15), recv(15);
      app::fill_operands(bench_case, ranks, rank, send.data(), recv.data());
      complaints += !app::check_result(bench_case, ranks, rank, recv.data()).empty();
    }
    EXPECT_EQ(complaints > 0, pattern != "barrier") << pattern;
  }
}

TEST(BenchCases, OneWrongElementIsNamed) {
  std::vector<float> send(5), recv(5);
  const app::BenchCase bench_case{"all_reduce", 20};
  app::fill_operands(bench_case, 3, 1, send.data(), recv.data());
  for (std::size_t i = 0; i < recv.size(); ++i) recv[i] = 3 * send[i];  // (1 + 2 + 3) / 2, rank 1 has twice
  EXPECT_EQ(app::check_result(bench_case, 3, 1, recv.data()), "");
  recv[3] += 1;
  EXPECT_EQ(app::check_result(bench_case, 3, 1, recv.data()), "element 3 is 25 instead of 24");
}

Outcome bench(const std::string& how, int pes, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"bench", "comm", "--seconds", "0.1"});
  return run({.line = job_line(how, pes, arguments)});
}

void expect_quartiles(const json& quartiles) {
  EXPECT_GT(quartiles.at("low").get<double>(), 0);
  EXPECT_LE(quartiles.at("low"), quartiles.at("median"));
  EXPECT_LE(quartiles.at("median"), quartiles.at("high"));
}

// Every pattern is measured, and compared with what the library has.
void expect_report(const json& report, int pes, const std::set<std::string>& baselines) {
  EXPECT_EQ(report.at("environment").at("ranks"), pes);
  EXPECT_EQ(report.at("environment").at("baselines").get<std::set<std::string>>(), baselines);
  std::set<std::string> patterns;
  std::set<std::string> compared;
  for (const json& c : report.at("cases")) {
    SCOPED_TRACE(c.dump());
    patterns.insert(c.at("pattern"));
    EXPECT_EQ(c.at("bytes"), c.at("pattern") == "barrier" ? 0 : 8);
    expect_quartiles(c.at("shoal").at("us"));
    EXPECT_GE(c.at("shoal").at("blocks"), 5);
    EXPECT_GT(c.at("before").at("read_gb_s"), 0);
    EXPECT_EQ(c.at("libraries").empty(), baselines.empty());
    for (const json& library : c.at("libraries")) {
      compared.insert(library.at("name"));
      expect_quartiles(library.at("us"));
      expect_quartiles(library.at("ratio"));
    }
  }
  const std::vector<std::string>& all = app::bench_patterns();
  EXPECT_EQ(patterns, std::set<std::string>(all.begin(), all.end()));
  EXPECT_EQ(compared, baselines);
  expect_quartiles(report.at("front").at("communicator_ns"));
}

class EveryWay : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_way(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  }
};
INSTANTIATE_TEST_SUITE_P(Bench, EveryWay, testing::Values("threads", "mpi", "shmem", "mpirun.mpich"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST_P(EveryWay, MeasuresAndChecksEveryPattern) {
  std::set<std::string> baselines = {"MPI"};
  if (GetParam() == "threads") baselines = {};
  if (GetParam() == "shmem") baselines = {"MPI", "OpenSHMEM"};
  // 8 bytes are 2 elements: on 3 ranks their parts are of unequal length, and one is empty.
  for (const int pes : {2, 3}) {
    SCOPED_TRACE(pes);
    const Outcome outcome = bench(GetParam(), pes, {"--bytes", "8", "--json", "-"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.describe();
    EXPECT_EQ(outcome.err, "");
    expect_report(json::parse(outcome.out), pes, baselines);
  }
}

TEST_P(EveryWay, PrintsATable) {
  const infer::test::TemporaryFolder folder;
  const std::string file = folder.file("figures.json");
  const Outcome outcome =
      bench(GetParam(), 2,
            {"--patterns", "all_reduce,barrier", "--bytes", "4K,1M", "--rounds", "2", "--json", file});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.describe();
  std::istringstream lines(outcome.out);
  std::set<std::string> rows;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    std::istringstream words(line);
    std::string pattern, bytes;
    if (words >> pattern >> bytes) rows.insert(pattern + " " + bytes);
  }
  for (const char* row : {"barrier -", "all_reduce 4K", "all_reduce 1M"})
    EXPECT_TRUE(rows.contains(row)) << row << "\n" << outcome.out;
  EXPECT_FALSE(rows.contains("broadcast 4K"));
  EXPECT_EQ(outcome.out.find("no library to compare with") != std::string::npos, GetParam() == "threads");
  std::ifstream written(file);
  const json report = json::parse(written);
  EXPECT_EQ(report.at("cases").size(), 3u);
  EXPECT_EQ(report.at("cases")[1].at("shoal").at("rounds"), 2);
}

void expect_refused(int exit_code, std::vector<std::string> arguments,
                    const std::vector<std::string>& names) {
  arguments.insert(arguments.begin(), {shoal_program(), "bench"});
  const Outcome outcome = run({.line = arguments, .limit_s = 20});
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.describe();
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.describe();
  for (const std::string& name : names)
    EXPECT_NE(outcome.err.find(name), std::string::npos) << name << "\n" << outcome.describe();
}

TEST(BenchOptions, WrongOnesAreRefusedInOneLine) {
  expect_refused(2, {}, {"subcommand"});
  expect_refused(2, {"gemm"}, {"subcommand"});
  expect_refused(2, {"comm", "--patterns", "barrier,allreduce"}, {"--patterns", "'allreduce'", "all_reduce"});
  expect_refused(2, {"comm", "--bytes", "8,6"}, {"--bytes", "6", "multiples of 4"});
  expect_refused(2, {"comm", "--bytes", "0"}, {"--bytes"});
  expect_refused(2, {"comm", "--bytes", "4X"}, {"--bytes", "4X"});
  expect_refused(2, {"comm", "--bytes", "2G"}, {"--bytes", "2G"});
  expect_refused(2, {"comm", "--rounds", "0"}, {"--rounds"});
  expect_refused(2, {"comm", "--seconds", "0"}, {"--seconds"});
  expect_refused(2, {"comm", "-n", "0"}, {"--pes"});
  expect_refused(2, {"comm", "--transport", "ib"}, {"--transport"});
  expect_refused(1, {"comm", "--json", "/nowhere/x.json"}, {"--json", "/nowhere/x.json"});
  expect_refused(1, {"comm", "-n", "1", "--patterns", "send_recv"}, {"--patterns", "two ranks"});
}

}  // namespace
}  // namespace shoal::test
