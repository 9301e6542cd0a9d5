// SPDX-License-Identifier: Apache-2.0
// Errors of jobs of several processes: one line, not one a PE, and the job ends.
#include <gtest/gtest.h>
#include <algorithm>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/bad_models.h"
#include "apps/process.h"

namespace shoal::test {
namespace {

/// The lines of `text` that are Shoal's.
std::vector<std::string> shoal_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.starts_with("shoal: ")) lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

class JobRefusal : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_way(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  }

  Outcome start(int pes, const std::vector<std::string>& arguments) {
    Process job({.line = job_line(GetParam(), pes, arguments), .limit_s = 20});
    const Outcome outcome = job.wait();
    EXPECT_TRUE(job.all_gone(5)) << "processes are left";
    return outcome;
  }

  /// One line by Shoal. A launcher that was called directly may add that a process ended with a code.
  void expect(const Outcome& outcome, const std::vector<std::string>& names) {
    if (!direct()) {
      expect_one_line(outcome, names);
      return;
    }
    EXPECT_FALSE(outcome.timed_out) << outcome.describe();
    EXPECT_GT(outcome.exit_code, 0) << outcome.describe();
    const std::vector<std::string> lines = shoal_lines(outcome.err);
    ASSERT_EQ(lines.size(), 1u) << outcome.describe();
    for (const std::string& name : names)
      EXPECT_NE(lines[0].find(name), std::string::npos) << "does not name " << name << "\n"
                                                        << outcome.describe();
  }

  /// Open MPI's launchers take a second or more to end a job that failed, so where they start the PEs only
  /// a part is tried.
  bool quick() const { return GetParam() == "mpirun.mpich"; }
  bool direct() const { return GetParam() != "mpi" && GetParam() != "shmem"; }

  BadModels models;
};
std::string way_name(const testing::TestParamInfo<std::string>& way) {
  std::string name = way.param;
  std::ranges::replace(name, '.', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Jobs, JobRefusal,
                         testing::Values("mpi", "shmem", "mpirun.openmpi", "mpirun.mpich", "oshrun"),
                         way_name);

/// What can go wrong only where the user starts the PEs: by shoal they get one path, and are as many as
/// asked.
class DirectJobRefusal : public JobRefusal {};
INSTANTIATE_TEST_SUITE_P(Jobs, DirectJobRefusal, testing::Values("mpirun.openmpi", "mpirun.mpich", "oshrun"),
                         way_name);

TEST_P(JobRefusal, FilesAndModels) {
  expect(start(2, {"run", "-m", models.file("nowhere.gguf"), "-p", "Hello"}), {"nowhere.gguf"});
  if (direct() && !quick()) return;
  const std::string cut = models.truncated(1000);
  expect(start(2, {"run", "-m", cut, "-p", "Hello"}), {cut});
  expect(start(2, {"run", "-m", models.good(), "-p", "Hello", "--memory", "10K"}), {"--memory"});
}

TEST_P(JobRefusal, PromptsAndOptions) {
  std::string words;
  for (int i = 0; i < 200; ++i) words += "word ";
  expect(start(2, {"run", "-m", models.good(), "-p", words, "--ctx", "32"}), {"the prompt has", "--ctx"});
  if (direct() && !quick()) return;
  expect(start(2, {"run", "-m", models.good(), "-p", "bad \xFF"}), {"-p", "byte 4", "UTF-8"});
  expect(start(2, {"run", "-m", models.good(), "-p", "Hello", "--top-p", "2"}), {"--top-p"});
}

TEST_P(JobRefusal, ANumericFaultOfTheLastPe) {
  expect(start(3, {"run", "-m", models.not_finite(), "-p", "Hello"}),
         {"PE 2", "non-finite logits at position"});
}

TEST_P(DirectJobRefusal, AModelThatDiffersBetweenPes) {
  const std::string other = models.changed("other.gguf", [](auto& w) { w.set("general.name", "another"); });
  const auto with_file_of_rank = [&](const std::string& second) {
    const std::string script = models.text("each.sh",
                                           "#!/bin/sh\n"
                                           "rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\n"
                                           "model=" +
                                               models.good() +
                                               "\n"
                                               "if [ \"$rank\" = 1 ]; then model=" +
                                               second +
                                               "; fi\n"
                                               "shift\n"
                                               "exec " +
                                               shoal_program() + " run -m \"$model\" \"$@\"\n");
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    std::vector<std::string> line = job_line(GetParam(), 3, {"run", "-p", "Hello"});
    for (std::string& word : line)
      if (word == shoal_program()) word = script;
    Process job({.line = line, .limit_s = 20});
    const Outcome outcome = job.wait();
    EXPECT_TRUE(job.all_gone(5));
    return outcome;
  };
  expect(with_file_of_rank(other), {"PE 1", "differ"});
  if (!quick()) return;
  expect(with_file_of_rank(models.file("nowhere.gguf")), {"PE 1", "nowhere.gguf"});
  expect(with_file_of_rank(models.truncated(2000)), {"PE 1", models.truncated(2000)});
  EXPECT_EQ(with_file_of_rank(models.good()).exit_code, 0);
}

TEST_P(DirectJobRefusal, ADifferentNumberThanTheLauncherStarted) {
  const Outcome outcome = start(2, {"run", "-m", models.good(), "-p", "Hello", "-n", "3"});
  EXPECT_GT(outcome.exit_code, 0) << outcome.describe();
  // Before the job is joined nobody knows of the others, so it may be a line a process.
  const std::vector<std::string> lines = shoal_lines(outcome.err);
  ASSERT_FALSE(lines.empty()) << outcome.describe();
  for (const std::string& line : lines) EXPECT_NE(line.find("-n 3"), std::string::npos) << line;
}

// --- the wrong launcher ---

struct Wrong {
  std::string launcher, transport, name;
};

class WrongLauncher : public testing::TestWithParam<Wrong> {};
INSTANTIATE_TEST_SUITE_P(Jobs, WrongLauncher,
                         testing::Values(Wrong{"mpirun.mpich", "shmem", "MPICH"},
                                         Wrong{"mpirun.mpich", "threads", "MPICH"},
                                         Wrong{"mpirun.openmpi", "threads", "Open MPI"}),
                         [](const auto& test) {
                           return test.param.transport + (test.param.name == "MPICH" ? "_mpich" : "_openmpi");
                         });

TEST_P(WrongLauncher, IsNamed) {
  const auto& [launcher, transport, name] = GetParam();
  if (const std::string missing = missing_way(launcher); !missing.empty()) GTEST_SKIP() << missing;
  const BadModels models;
  std::vector<std::string> line = {launcher};
  if (name == "Open MPI") line.push_back("--oversubscribe");
  line.insert(line.end(), {"-n", "2", shoal_program(), "run", "-m", models.good(), "-p", "Hello",
                           "--transport", transport});
  const Outcome outcome = run({.line = line, .limit_s = 20});
  EXPECT_FALSE(outcome.timed_out) << outcome.describe();
  EXPECT_GT(outcome.exit_code, 0) << outcome.describe();
  const std::vector<std::string> lines = shoal_lines(outcome.err);
  ASSERT_FALSE(lines.empty()) << outcome.describe();
  EXPECT_LE(lines.size(), 2u);  // the processes know nothing of each other
  for (const std::string& text : lines) {
    EXPECT_NE(text.find(name), std::string::npos) << text;
    EXPECT_NE(text.find(transport), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace shoal::test
