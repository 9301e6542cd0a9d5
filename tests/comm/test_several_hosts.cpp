// SPDX-License-Identifier: Apache-2.0
// What only several hosts with several ranks each do: schedules that are used again, and all_to_all by way of
// the ranks of a host. Threads, which treat those of other groups as if they were on other hosts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "shoal/comm/communicator.h"
#include "shoal/comm/job.h"

namespace shoal::comm {
namespace {

class SeveralHosts : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { setenv("SHOAL_FAKE_HOSTS", "2", 1); }
  void TearDown() override { unsetenv("SHOAL_FAKE_HOSTS"); }
};

// Thrown, so that the other ranks end too.
void expect_equal(const std::vector<float>& actual, const std::vector<float>& expected, const char* what) {
  if (actual != expected) throw std::runtime_error(std::string(what) + " is wrong");
}

std::vector<float> numbers(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// The same buffers and calls, other contents each time.
TEST_P(SeveralHosts, ACallThatIsMadeAgainGivesWhatThereIsNow) {
  run_threads(GetParam(), [](Communicator& world) {
    const auto size = static_cast<std::size_t>(world.size());
    const auto mine = static_cast<float>(world.rank());
    std::vector<float> in(3), sum(3), all(3 * size), part(3), sent(3);
    const std::vector<std::int64_t> counts(size, 3);
    for (int call = 0; call < 20; ++call) {
      const auto base = static_cast<float>(100 * call);
      in = numbers(3, base + mine);
      world.all_reduce(in, sum, Reduction::max);
      expect_equal(sum, numbers(3, base + static_cast<float>(world.size() - 1)), "all_reduce");
      world.all_gather(in, all, counts);
      for (std::size_t r = 0; r < size; ++r)
        expect_equal({&all[3 * r], &all[3 * r] + 3}, numbers(3, base + static_cast<float>(r)), "all_gather");
      for (Rank root = 0; root < world.size(); ++root) {
        sent = in;
        world.broadcast(sent, root);
        expect_equal(sent, numbers(3, base + static_cast<float>(root)), "broadcast");
        world.scatter(all, part, counts, root);
        expect_equal(part, in, "scatter");
        world.reduce(in, sum, Reduction::min, root);
        if (root == world.rank()) expect_equal(sum, numbers(3, base), "reduce");
        std::vector<float> gathered(root == world.rank() ? 3 * size : 0);
        world.gather(in, gathered, counts, root);
        if (root == world.rank()) expect_equal(gathered, all, "gather");
      }
    }
  });
}

// While the first is under way, its schedule must not be used by the second.
TEST_P(SeveralHosts, EqualCallsAtTheSameTimeDoNotDisturbEachOther) {
  run_threads(GetParam(), [](Communicator& world) {
    const std::vector<float> in = numbers(1000, static_cast<float>(world.rank()));
    for (int round = 0; round < 20; ++round) {
      std::vector<float> first(1000), second(1000), none;
      std::vector<Request> requests;
      for (std::vector<float>* out : {&first, &second})
        requests.push_back(world.reduce_async(in, world.rank() == 0 ? *out : none, Reduction::min, 0));
      for (int i = 0; i < 4; ++i) requests.push_back(world.barrier_async());
      wait_all(requests);
      if (world.rank() != 0) continue;
      expect_equal(first, numbers(1000, 0), "the first reduce");
      expect_equal(second, numbers(1000, 0), "the second reduce");
    }
  });
}

// Float sums show their order: by rank within a host, then over the hosts, whatever carries them.
TEST_P(SeveralHosts, SumsHaveOneOrderForAllSizes) {
  run_threads(GetParam(), [](Communicator& world) {
    const auto value = [](int rank) {
      return 1.0f / static_cast<float>(3 + 7 * rank) + 1e5f * static_cast<float>(rank % 2);
    };
    const int here = (world.size() + 1) / 2;
    float hosts[2] = {0, 0};
    for (int rank = 0; rank < world.size(); ++rank) {
      float& host = hosts[rank / here];
      host = rank % here == 0 ? value(rank) : host + value(rank);
    }
    const float expected = hosts[0] + hosts[1];
    for (const std::size_t count : {1u, 2000u, 2100u, 40000u}) {
      const std::vector<float> in(count, value(world.rank()));
      std::vector<float> out(count);
      world.all_reduce(in, out, Reduction::sum);
      expect_equal(out, std::vector<float>(count, expected), "all_reduce");
      world.reduce(in, out, Reduction::sum, world.size() - 1);
      if (world.rank() == world.size() - 1) expect_equal(out, std::vector<float>(count, expected), "reduce");
    }
  });
}

// Uneven parts of all sizes: told along with the counts, collected, sent straight, and a mixture.
TEST_P(SeveralHosts, AllToAllBringsEveryPartToItsPlace) {
  run_threads(GetParam(), [](Communicator& world) {
    const auto size = static_cast<std::size_t>(world.size());
    const auto me = static_cast<std::size_t>(world.rank());
    for (const std::size_t unit : {0u, 1u, 3u, 200u, 3000u, 9000u}) {
      const auto count = [&](std::size_t from, std::size_t to) { return unit * ((from + 2 * to) % 4); };
      const auto first = [&](std::size_t from, std::size_t to) {
        return static_cast<float>(100 * from + to);
      };
      std::vector<std::int64_t> send_counts, recv_counts;
      std::vector<float> in, expected;
      for (std::size_t r = 0; r < size; ++r) {
        const std::vector<float> sent = numbers(count(me, r), first(me, r));
        const std::vector<float> received = numbers(count(r, me), first(r, me));
        send_counts.push_back(static_cast<std::int64_t>(sent.size()));
        recv_counts.push_back(static_cast<std::int64_t>(received.size()));
        in.insert(in.end(), sent.begin(), sent.end());
        expected.insert(expected.end(), received.begin(), received.end());
      }
      std::vector<float> out(expected.size());
      for (int again = 0; again < 2; ++again) {
        std::ranges::fill(out, -1.0f);
        world.all_to_all(in, send_counts, out, recv_counts);
        expect_equal(out, expected, "all_to_all");
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SeveralHosts, testing::Values(2, 3, 4, 5, 7));

}  // namespace
}  // namespace shoal::comm
