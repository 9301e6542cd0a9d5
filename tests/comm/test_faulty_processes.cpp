// SPDX-License-Identifier: Apache-2.0
// Faults that take a whole process with them (ranks that are threads would all go with the one).
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

namespace shoal::comm {
namespace {

using Clock = std::chrono::steady_clock;

struct Ended {
  int code = -1;
  double seconds = 0;
  std::string output;
};

Ended launch(const std::string& fault) {
  Ended ended;
  const auto start = Clock::now();
  const std::string command = "env SHOAL_TIMEOUT=20 SHOAL_FAULT='" + fault +
                              "' timeout -k 1 25 " LAUNCH_COMMAND " -n 3 " CONFORMANCE_PROGRAM " mpi 3 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return ended;
  std::array<char, 4096> block{};
  for (std::size_t n; (n = fread(block.data(), 1, block.size(), pipe)) > 0;)
    ended.output.append(block.data(), n);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ended.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return ended;
}

TEST(FaultyProcesses, OneThatDiesOrExitsEndsTheJob) {
  for (const std::string fault : {"rank=1,after=20,do=die", "rank=2,after=20,do=exit"}) {
    const Ended ended = launch(fault);
    EXPECT_NE(ended.code, 0) << fault;
    EXPECT_NE(ended.code, 124) << fault << ": " << ended.output;  // hangs
    EXPECT_LT(ended.seconds, 15.0) << fault;
    EXPECT_EQ(ended.output.find("all equal"), std::string::npos) << ended.output;
  }
}

}  // namespace
}  // namespace shoal::comm
