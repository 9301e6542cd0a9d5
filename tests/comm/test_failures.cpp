// SPDX-License-Identifier: Apache-2.0
// What a user sees when a rank goes wrong: its message, a code other than 0, and soon.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ostream>
#include <string>

#include "shoal/comm/job.h"

namespace shoal::comm {
namespace {

struct Outcome {
  int exit_code = -1;
  double seconds = 0;
  std::string output;  // both streams
};

Outcome run_shell(const std::string& command) {
  Outcome outcome;
  const auto start = std::chrono::steady_clock::now();
  std::FILE* pipe = popen(("timeout -k 1 25 " + command + " 2>&1").c_str(), "r");
  if (!pipe) return outcome;
  std::array<char, 4096> block{};
  for (std::size_t n; (n = fread(block.data(), 1, block.size(), pipe)) > 0;)
    outcome.output.append(block.data(), n);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

struct Way {
  std::string name;  // for the test's name
  std::string transport;
  std::string library;  // as in TransportStatus
  std::string launch;   // before "-n RANKS"
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

const std::string open_mpi =
    " --oversubscribe --bind-to none --allow-run-as-root --mca mpi_yield_when_idle 1 --mca osc ^rdma";
const std::array<Way, 4> ways = {{
    {"threads", "threads", "threads of one process", ""},
    {"mpi_openmpi", "mpi", "Open MPI", "mpirun.openmpi" + open_mpi},
    {"mpi_mpich", "mpi", "MPICH", "mpirun.mpich"},
    {"shmem", "shmem", "OpenSHMEM of Open MPI", "oshrun" + open_mpi},
}};

class Failures : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    for (const TransportStatus& status : probe_transports())
      if (status.library == GetParam().library && !status.available) GTEST_SKIP() << status.detail;
  }
  static Outcome run(int ranks, const std::string& what, int who) {
    const std::string n = std::to_string(ranks);
    const std::string program = std::string(FAILING_PROGRAM) + " " + GetParam().transport + " " + n + " " +
                                what + " " + std::to_string(who);
    const std::string launch = GetParam().launch.empty() ? "" : GetParam().launch + " -n " + n + " ";
    return run_shell(launch + program);
  }
};

TEST_P(Failures, AJobThatEndsWellExitsWithZero) {
  for (const int ranks : {1, 3}) {
    const Outcome outcome = run(ranks, "nothing", 0);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "");
  }
}

TEST_P(Failures, AnExceptionOnOneRankEndsTheJobWithItsMessage) {
  for (const int who : {0, 1, 2}) {
    const Outcome outcome = run(3, "throw", who);
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_LT(outcome.seconds, 5.0);
    EXPECT_EQ(outcome.output.find("shoal: PE " + std::to_string(who) + " ("), 0u) << outcome.output;
    EXPECT_NE(outcome.output.find("the sky is falling"), std::string::npos) << outcome.output;
  }
}

TEST_P(Failures, AnAgreedErrorIsOneLine) {
  const Outcome outcome = run(3, "agree", 1);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("the disk is full"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("the disk is full"), outcome.output.rfind("the disk is full"))
      << outcome.output;
  EXPECT_EQ(outcome.output.find("shoal: PE 1 ("), 0u) << outcome.output;
}

TEST_P(Failures, LengthsOfAMessageThatDifferAreNamed) {
  const Outcome outcome = run(2, "length", 0);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, 5.0);
  EXPECT_NE(outcome.output.find("recv on rank 1 expects 16 bytes, but rank 0"), std::string::npos)
      << outcome.output;
}

TEST_P(Failures, SymmetricMemoryThatDoesNotFitIsAnErrorOnAll) {
  const Outcome outcome = run(2, "heap", 0);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, 5.0);
  EXPECT_NE(outcome.output.find("symmetric allocation of 17592186044544 bytes"), std::string::npos)
      << outcome.output;
}

TEST_P(Failures, SymmetricMemoryOfUnequalSizeNamesBoth) {
  const Outcome outcome = run(2, "unequal", 1);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, 5.0);
  EXPECT_NE(outcome.output.find("384"), std::string::npos)
      << outcome.output;  // 10 doubles a peer, and a signal
  EXPECT_NE(outcome.output.find("512"), std::string::npos)
      << outcome.output;  // 20 doubles a peer, and a signal
}

INSTANTIATE_TEST_SUITE_P(Transports, Failures, testing::ValuesIn(ways),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace shoal::comm
