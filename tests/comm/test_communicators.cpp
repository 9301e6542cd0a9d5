// SPDX-License-Identifier: Apache-2.0
// Communicators are cheap to make and leave nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "comm/many_communicators.h"
#include "shoal/comm/job.h"
#include "shoal/comm/symmetric_segments.h"

namespace shoal::comm {
namespace {

constexpr int many = sanitized ? 3'000 : 100'000;
constexpr std::int64_t allowed_growth = std::int64_t{4} << 20;  // 20 bytes a communicator and rank

// Thrown, so that the other ranks end too.
void expect_same(double actual, double expected) {
  if (actual != expected)
    throw std::runtime_error(std::to_string(actual) + " instead of " + std::to_string(expected));
}

// (On the other transports: communicators_main.cpp.)
TEST(Communicators, AHundredThousandLeaveNothingBehind) {
  run_threads(2, [](Communicator& world) {
    const std::int64_t growth = growth_by_communicators(world, many);
    if (!sanitized) {
      EXPECT_LT(growth, allowed_growth);
    }
  });
}

TEST(Communicators, ManyAtOnceKeepTheirMessagesApart) {
  run_threads(3, [](Communicator& world) {
    constexpr std::size_t number = 200;
    std::vector<Communicator> open;
    for (std::size_t i = 0; i < number; ++i) open.push_back(world.duplicate());
    std::vector<std::array<int, 1>> sums(number);
    std::vector<Request> requests;
    for (std::size_t i = 0; i < number; ++i) {
      sums[i] = {static_cast<int>(i) * (world.rank() + 1)};
      requests.push_back(open[i].all_reduce_async(sums[i], Reduction::sum));
    }
    // Waited for in an order of each rank's own.
    std::mt19937 order(static_cast<unsigned>(world.rank()));
    std::shuffle(requests.begin(), requests.end(), order);
    wait_all(requests);
    for (std::size_t i = 0; i < number; ++i) expect_same(sums[i][0], static_cast<int>(i) * 6);
  });
}

TEST(Communicators, MessagesOfOneTagAreToldApart) {
  run_threads(2, [](Communicator& world) {
    constexpr std::size_t number = 50;
    std::vector<Communicator> open;
    for (std::size_t i = 0; i < number; ++i) open.push_back(i % 2 ? world.duplicate() : *world.split(0));
    std::vector<std::array<std::size_t, 1>> numbers(number);
    std::vector<Request> requests;
    for (std::size_t i = 0; i < number; ++i) {
      numbers[i] = {i};
      if (world.rank() == 0) requests.push_back(open[i].send_async(numbers[i], 1));
    }
    for (std::size_t i = number; world.rank() == 1 && i-- > 0;) {
      std::array<std::size_t, 1> received = {number};
      open[i].recv(received, 0);
      expect_same(static_cast<double>(received[0]), static_cast<double>(i));
    }
    wait_all(requests);
  });
}

// Ranks drop theirs at different times, and in a different order.
TEST(Communicators, AreDroppedByEachRankWhenItLikes) {
  run_threads(3, [](Communicator& world) {
    std::vector<std::optional<Communicator>> open(30);
    std::mt19937 order(static_cast<unsigned>(world.rank() + 7));
    for (int i = 0; i < 300; ++i) {
      auto& place = open[static_cast<std::size_t>(i) % open.size()];
      if (world.rank() != 1) place.reset();
      place = i % 2 ? world.duplicate() : world.split(world.rank() % 2);
      expect_same(place->all_reduce(1, Reduction::sum), i % 2 ? 3 : world.rank() == 1 ? 1 : 2);
      if (order() % 4 == 0) open[order() % open.size()].reset();
    }
  });
}

TEST(Communicators, ARequestOutlivesItsCommunicator) {
  run_threads(3, [](Communicator& world) {
    std::vector<double> data(5'000, world.rank() + 1.0);
    Request request = [&] {
      Communicator made = world.duplicate();
      return made.all_reduce_async(data, Reduction::sum);
    }();
    Communicator other = world.duplicate();
    EXPECT_EQ(other.all_reduce(1, Reduction::sum), 3);
    request.wait();
    for (const double x : data) expect_same(x, 6.0);
  });
}

// Then there is nothing to wait for any more, as after a wait() that threw.
TEST(Communicators, ARequestIsDoneWhenItsTestHasThrown) {
  std::atomic<bool> started = false;
  run_threads(2, [&](Communicator& world) {
    if (world.rank() == 0) {
      started.wait(false);
      return world.send(std::array<int, 3>{}, 1);
    }
    std::array<int, 2> room{};
    Request request = world.recv_async(room, 0);
    started = true;
    started.notify_one();
    const auto test_until_it_throws = [&] {
      while (!request.test()) std::this_thread::yield();
    };
    EXPECT_THROW(test_until_it_throws(), Error);
    EXPECT_TRUE(request.test());
  });
}

TEST(Communicators, SegmentsOutliveTheirCommunicator) {
  run_threads(2, [](Communicator& world) {
    std::optional<Communicator> made = world.duplicate();
    SymmetricSegments<int> segments(*made, 1);
    made.reset();
    for (int i = 0; i < 5; ++i) world.duplicate().barrier();
    segments.put(1 - world.rank(), 0, View<const int>(std::vector{world.rank() + 40}), 1);
    segments.wait(1 - world.rank(), 1);
    EXPECT_EQ(segments.from(1 - world.rank())[0], 41 - world.rank());
    world.barrier();
  });
}

}  // namespace
}  // namespace shoal::comm
