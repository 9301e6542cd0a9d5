// SPDX-License-Identifier: Apache-2.0
// The thread team: every member runs exactly once a run(), results are visible after it, and neither
// sleeping members nor more threads than cores break or stall it.
#include "shoal/base/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "shoal/base/error.h"

namespace shoal {
namespace {

TEST(ThreadTeam, RunsEveryMemberOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadTeam team(threads);
    ASSERT_EQ(team.size(), threads);
    std::vector<long> sums(static_cast<std::size_t>(threads), 0);  // plain memory: run() must order it
    constexpr long rounds = 500;
    for (long round = 1; round <= rounds; ++round)
      team.run([&](int member) { sums[static_cast<std::size_t>(member)] += round * (member + 1); });
    for (int member = 0; member < threads; ++member)
      EXPECT_EQ(sums[static_cast<std::size_t>(member)], rounds * (rounds + 1) / 2 * (member + 1));
  }
}

TEST(ThreadTeam, MembersRunAtTheSameTime) {
  ThreadTeam team(3);
  std::atomic<int> arrived = 0;
  team.run([&](int) {  // a barrier: ends only when all three are inside
    ++arrived;
    while (arrived.load() < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived.load(), 3);
}

TEST(ThreadTeam, MemberZeroIsTheCaller) {
  ThreadTeam team(2);
  std::vector<std::thread::id> ids(2);
  team.run([&](int member) { ids[static_cast<std::size_t>(member)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], std::this_thread::get_id());
}

TEST(ThreadTeam, WakesSleepingMembersAndASleepingCaller) {
  ThreadTeam team(2);
  std::vector<int> runs(2, 0);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // members are asleep
    team.run([&](int member) {
      ++runs[static_cast<std::size_t>(member)];
      if (member == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the caller sleeps
    });
  }
  EXPECT_EQ(runs, (std::vector<int>{3, 3}));
}

TEST(ThreadTeam, EndsWhileMembersWaitInAnyPhase) {
  for (int round = 0; round < 50; ++round) {
    ThreadTeam team(4);
    if (round % 2 == 0) team.run([](int) {});
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(ThreadTeam, RefusesNoThreads) {
  for (const int threads : {0, -3}) {
    try {
      const ThreadTeam team(threads);
      FAIL() << "a team of " << threads << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace shoal
