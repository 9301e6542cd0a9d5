// SPDX-License-Identifier: Apache-2.0
// Notices of Open MPI on how a PE ended are taken out of a job's standard error; all else passes, at once.
#include "launcher_output.h"

#include <gtest/gtest.h>

#include <string>

namespace shoal::app {
namespace {

const std::string rule = std::string(74, '-') + "\n";
const std::string killed =
    rule + "mpirun noticed that process rank 12 with PID 0 on node n3 exited on signal 9 (Killed).\n" + rule;

TEST(LauncherOutput, TakesNoticesOutAndKeepsWhatTheySay) {
  LauncherOutput output;
  const std::string aborted =
      rule + "Primary job  terminated normally, but 1 process returned\na non-zero\n" + rule;
  EXPECT_EQ(output.pass("before\n" + aborted + killed + "after\n"), "before\nafter\n");
  ASSERT_TRUE(output.ended_pe());
  EXPECT_EQ(output.ended_pe()->rank, 12);
  EXPECT_EQ(output.ended_pe()->host, "n3");
  EXPECT_EQ(output.rest(), "");
}

TEST(LauncherOutput, WorksInPiecesOfAnySize) {
  for (std::size_t size = 1; size < 100; size += 7) {
    LauncherOutput output;
    const std::string text = "> " + std::string("prompt\n") + killed + "-- end\n";
    std::string passed;
    for (std::size_t at = 0; at < text.size(); at += size) passed += output.pass(text.substr(at, size));
    EXPECT_EQ(passed, "> prompt\n-- end\n");
    EXPECT_TRUE(output.ended_pe());
  }
}

TEST(LauncherOutput, PassesAllElseAtOnce) {
  LauncherOutput output;
  EXPECT_EQ(output.pass("> "), "> ");  // no newline yet
  EXPECT_EQ(output.pass("hello\n---\n"), "hello\n---\n");
  const std::string other = rule + "There are not enough slots available\n" + rule;
  EXPECT_EQ(output.pass(other), other);
  EXPECT_FALSE(output.ended_pe());
}

TEST(LauncherOutput, LogsOfTheLaunchersDaemonsAreDropped) {
  LauncherOutput output;
  EXPECT_EQ(output.pass("[n1:84] [[19941,0],0] ORTE_ERROR"), "");
  EXPECT_EQ(output.pass("_LOG: Data unpack would read past end of buffer\nshoal: PE 2\n"), "shoal: PE 2\n");
  EXPECT_EQ(output.pass("[1/4] loading\n"), "[1/4] loading\n");
}

TEST(LauncherOutput, AFrameThatDoesNotEndIsNotLost) {
  LauncherOutput output;
  EXPECT_EQ(output.pass(rule + "half a "), "");
  EXPECT_EQ(output.rest(), rule + "half a ");
}

}  // namespace
}  // namespace shoal::app
