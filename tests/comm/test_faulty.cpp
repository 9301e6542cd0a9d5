// SPDX-License-Identifier: Apache-2.0
// What SHOAL_FAULT says, and what it does to ranks that are threads.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "comm/decorators/faults.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/comm/symmetric_segments.h"

namespace shoal::comm {
namespace {

using Clock = std::chrono::steady_clock;

// Read once a process, by the first job.
[[maybe_unused]] const int deadline_is_short = setenv("SHOAL_TIMEOUT", "1", 1);

std::string refusal(const std::string& text) {
  try {
    parse_faults(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(Faults, TheLanguage) {
  const std::vector<Fault> faults =
      parse_faults("rank=1,after=20,do=die;do=delay,us=200,every=3;pattern=put,do=lose,chance=0.5,seed=9");
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0].rank, 1);
  EXPECT_EQ(faults[0].after, 20u);
  EXPECT_EQ(faults[0].action, FaultAction::die);
  EXPECT_EQ(faults[1].rank, std::nullopt);
  EXPECT_EQ(faults[1].delay.count(), 200);
  EXPECT_EQ(faults[1].every, 3u);
  EXPECT_EQ(faults[2].call, Call::put);
  EXPECT_EQ(faults[2].chance, 0.5);
  EXPECT_EQ(faults[2].seed, 9u);
  EXPECT_TRUE(parse_faults("").empty());
}

TEST(Faults, WhatIsWrongIsNamed) {
  EXPECT_EQ(refusal("rank=1,do=explode"),
            "SHOAL_FAULT: 'rank=1,do=explode': do=explode is none of die, silent, throw, exit, delay, lose");
  EXPECT_EQ(refusal("do=die,rank=x"),
            "SHOAL_FAULT: 'do=die,rank=x': rank=x is not a whole number from 0 to 2147483647");
  EXPECT_EQ(refusal("do=die;after=0,do=die"),
            "SHOAL_FAULT: 'after=0,do=die': after=0 is not a whole number from 1 to 999999999999999999");
  EXPECT_EQ(refusal("rank=1"),
            "SHOAL_FAULT: 'rank=1': do is missing: die, silent, throw, exit, delay or lose");
  EXPECT_NE(refusal("do"), "");
  EXPECT_NE(refusal("do=die,when=now").find("when is no field"), std::string::npos);
  EXPECT_NE(refusal("do=die,chance=2").find("chance=2 is not between 0 and 1"), std::string::npos);
  EXPECT_NE(refusal("do=die,pattern=shout").find("pattern=shout is none"), std::string::npos);
  EXPECT_NE(refusal("do=delay").find("needs us="), std::string::npos);
  EXPECT_NE(refusal("do=die,us=1").find("us belongs to do=delay"), std::string::npos);
  EXPECT_NE(refusal("do=die,every=2").find("every belongs to"), std::string::npos);
  EXPECT_NE(refusal("do=lose,pattern=barrier").find("only put, send and exchange"), std::string::npos);
  try {
    run({.transport = "threads", .fault = "do=what"}, [](Communicator&) { return 0; });
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  }
}

std::vector<std::uint64_t> strikes(const std::string& text, Rank rank, std::uint64_t last) {
  const Fault fault = parse_faults(text).front();
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 1; i <= last; ++i)
    if (fault.strikes(rank, i)) numbers.push_back(i);
  return numbers;
}

TEST(Faults, When) {
  using Numbers = std::vector<std::uint64_t>;
  EXPECT_EQ(strikes("rank=1,after=4,do=throw", 1, 20), Numbers{4});
  EXPECT_EQ(strikes("rank=1,after=4,do=throw", 0, 20), Numbers{});
  EXPECT_EQ(strikes("do=delay,us=1,after=3,every=4", 2, 12), (Numbers{3, 7, 11}));
  const Numbers some = strikes("do=delay,us=1,chance=0.25,seed=5", 2, 1000);
  EXPECT_EQ(strikes("do=delay,us=1,chance=0.25,seed=5", 2, 1000), some);  // the same in every run
  EXPECT_NE(strikes("do=delay,us=1,chance=0.25,seed=6", 2, 1000), some);
  EXPECT_NE(strikes("do=delay,us=1,chance=0.25,seed=5", 1, 1000), some);
  EXPECT_GT(some.size(), 180u);  // 250 expected, standard deviation 14
  EXPECT_LT(some.size(), 320u);
}

// Runs `body` with a fault; the text of the error that ends the job, "" if none does.
std::string outcome(int ranks, const std::string& fault, const std::function<void(Communicator&)>& body) {
  setenv("SHOAL_FAULT", fault.c_str(), 1);
  std::string text;
  try {
    run_threads(ranks, body);
  } catch (const Error& error) {
    text = error.what();
  }
  unsetenv("SHOAL_FAULT");
  return text;
}

void barriers(Communicator& world) {
  for (int i = 0; i < 6; ++i) world.barrier();
}

TEST(Faulty, ThrowsAtTheOperationThatWasAskedFor) {
  std::atomic<int> done = 0;
  const std::string text = outcome(2, "rank=1,after=4,do=throw", [&](Communicator& world) {
    for (int i = 0; i < 6; ++i) {
      world.barrier();
      if (world.rank() == 1) ++done;
    }
  });
  EXPECT_EQ(text, "injected fault: barrier on rank 1, operation 4");
  EXPECT_EQ(done, 3);
  EXPECT_EQ(outcome(2, "rank=1,after=7,do=throw", barriers), "");
  EXPECT_EQ(outcome(2, "rank=2,do=throw", barriers), "SHOAL_FAULT: rank=2, but the job has 2");
}

TEST(Faulty, CountsOnlyThePatternThatWasAskedFor) {
  const std::string text = outcome(2, "rank=0,pattern=broadcast,after=2,do=throw", [](Communicator& world) {
    std::vector<int> data(1);
    for (int i = 0; i < 3; ++i) {
      world.barrier();
      world.broadcast(data, 0);
    }
  });
  EXPECT_EQ(text, "injected fault: broadcast on rank 0, operation 2");
}

TEST(Faulty, ASilentRankIsNamed) {
  const std::string text = outcome(2, "rank=1,after=3,do=silent", barriers);
  EXPECT_NE(text.find(" 1 ("), std::string::npos) << text;
  EXPECT_NE(text.find("silent"), std::string::npos) << text;
}

TEST(Faulty, DelaysAddUp) {
  const auto seconds = [](const std::string& fault) {
    const auto start = Clock::now();
    EXPECT_EQ(outcome(2, fault, barriers), "");
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  EXPECT_GE(seconds("rank=0,do=delay,us=20000,every=2"), 0.06);  // operations 1, 3, 5
}

TEST(Faulty, ALostMessageNeverComes) {
  const std::string text = outcome(2, "rank=0,do=lose", [](Communicator& world) {
    std::vector<int> data(1, world.rank());
    world.barrier();  // is no message, and is not counted
    if (world.rank() == 0)
      world.send(data, 1);
    else
      world.recv(data, 0);
  });
  EXPECT_NE(text.find("recv"), std::string::npos) << text;
  EXPECT_NE(text.find(" 0 ("), std::string::npos) << text;
}

TEST(Faulty, ALostPutNeverComes) {
  const std::string text = outcome(2, "rank=1,pattern=put,after=3,do=lose", [](Communicator& world) {
    SymmetricSegments<int> segments(world, 1);
    for (std::uint64_t round = 1; round <= 3; ++round) {
      segments.signal(1 - world.rank(), round);
      segments.wait(1 - world.rank(), round);
      EXPECT_TRUE(world.rank() == 1 || round < 3);
    }
  });
  EXPECT_NE(text.find("silent"), std::string::npos) << text;
}

}  // namespace
}  // namespace shoal::comm
