// SPDX-License-Identifier: Apache-2.0
#include "shoal/comm/job.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>

#include "comm/shmem/symmetric_heap.h"
#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

TEST(RunThreads, TheExceptionOfARankIsThrownAndTheOthersStop) {
  for (const int who : {0, 1, 3}) {
    std::atomic<int> stopped = 0;
    try {
      run_threads(4, [&](Communicator& world) {
        if (world.rank() == who) throw std::range_error("one is enough");
        try {
          for (;;) world.barrier();
        } catch (const Error& error) {
          if (error.code() == ErrorCode::aborted) ++stopped;
          throw;
        }
      });
      ADD_FAILURE() << "no exception";
    } catch (const std::range_error& error) {
      EXPECT_STREQ(error.what(), "one is enough");
    }
    EXPECT_EQ(stopped, 3);
  }
}

TEST(RunThreads, CanBeUsedAgainAndAgain) {
  for (int i = 1; i < 20; ++i) {
    std::atomic<int> sum = 0;
    run_threads(i % 5 + 1, [&](Communicator& world) { sum += world.all_reduce(1, Reduction::sum); });
    EXPECT_EQ(sum, (i % 5 + 1) * (i % 5 + 1));
  }
}

TEST(RunThreads, RefusesNoRanks) {
  EXPECT_THROW(run_threads(0, [](Communicator&) {}), Error);
}

TEST(Agree, AllRanksThrowTheSame) {
  std::atomic<int> same = 0;
  run_threads(3, [&](Communicator& world) {
    try {
      agree(world, [&] {
        if (world.rank() > 0) fail(ErrorCode::io, "file of " + std::to_string(world.rank()));
      });
    } catch (const AgreedError& error) {
      const std::string what = error.what();
      if (error.code() == ErrorCode::io && what.starts_with("PE 1 (") && what.ends_with("file of 1")) ++same;
    }
    agree(world, [] {});  // and goes on
  });
  EXPECT_EQ(same, 3);
}

TEST(Agree, WhatIsWrongEverywhereNeedsNoRank) {
  run_threads(2, [](Communicator& world) {
    try {
      agree(world, [] { fail(ErrorCode::format, "bad file"); });
      ADD_FAILURE();
    } catch (const AgreedError& error) {
      EXPECT_STREQ(error.what(), "bad file");
    }
  });
}

TEST(ResolveTransport, FollowsTheLauncherAndTheWish) {
  unsetenv("SHOAL_TRANSPORT");
  EXPECT_EQ(resolve_transport("auto", {}), "threads");
  EXPECT_EQ(resolve_transport("shmem", {}), "shmem");
  EXPECT_EQ(resolve_transport("auto", {"MPICH", 0, 4, 4}), "mpi");  // MPICH brings no OpenSHMEM
  setenv("SHOAL_TRANSPORT", "mpi", 1);
  EXPECT_EQ(resolve_transport("auto", {}), "mpi");
  EXPECT_EQ(resolve_transport("threads", {}), "threads");  // what is asked for wins
  setenv("SHOAL_TRANSPORT", "pigeon", 1);
  EXPECT_THROW(resolve_transport("auto", {}), Error);
  unsetenv("SHOAL_TRANSPORT");
}

TEST(LaunchEnvironment, ReadsWhatLaunchersSet) {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK", "PMI_SIZE"})
    unsetenv(name);
  EXPECT_EQ(read_launch_environment().launcher, "");
  EXPECT_EQ(read_launch_environment().size, 1);
  setenv("PMI_RANK", "2", 1);
  setenv("PMI_SIZE", "5", 1);
  EXPECT_EQ(read_launch_environment().launcher, "MPICH");
  EXPECT_EQ(read_launch_environment().rank, 2);
  EXPECT_EQ(read_launch_environment().size, 5);
  setenv("PMI_SIZE", "many", 1);
  EXPECT_EQ(read_launch_environment().launcher, "");
  unsetenv("PMI_RANK");
  unsetenv("PMI_SIZE");
}

using shmem::SymmetricHeap;

TEST(SymmetricHeap, TakesTheFirstPieceThatIsFreeOnAll) {
  SymmetricHeap heap(1000);
  EXPECT_EQ(heap.find(1000, {}), 0u);
  EXPECT_EQ(heap.find(1001, {}), std::nullopt);
  EXPECT_EQ(heap.find(100, {{0, 64}, {128, 300}}), 300u);
  EXPECT_EQ(heap.find(64, {{0, 64}, {128, 300}}), 64u);
  EXPECT_EQ(heap.find(64, {{128, 300}, {0, 200}, {0, 64}}), 300u);  // overlapping, out of order
  EXPECT_EQ(heap.largest_free({{128, 300}, {0, 200}, {600, 1000}}), 300u);
}

TEST(SymmetricHeap, PiecesAreWholeCacheLinesAndComeBack) {
  SymmetricHeap heap(256);
  heap.take(0, 65);
  EXPECT_EQ(heap.find(64, heap.taken()), 128u);
  heap.take(128, 0);  // nothing is something: it must be told apart
  EXPECT_EQ(heap.find(64, heap.taken()), 192u);
  heap.give_back(0);
  EXPECT_EQ(heap.find(100, heap.taken()), 0u);
}

}  // namespace
}  // namespace shoal::comm
