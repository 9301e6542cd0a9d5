// SPDX-License-Identifier: Apache-2.0
// Sizes at which an algorithm gives way to another one: just below, at and just above, where ranks that do
// not choose alike would wait for each other for ever. Threads, which stand for ranks of one and several
// hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "shoal/comm/communicator.h"
#include "shoal/comm/job.h"

namespace shoal::comm {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Counts = std::vector<std::int64_t>;

struct Place {
  int ranks;
  const char* hosts;  // as in SHOAL_FAKE_HOSTS; "apart": no rank shares memory with another
};
void PrintTo(const Place& place, std::ostream* out) {
  *out << place.ranks << " ranks, hosts " << place.hosts;
}

// `count` bytes that tell where they come from, and for whom they are.
Bytes bytes_of(Rank from, Rank to, std::int64_t count) {
  Bytes bytes(static_cast<std::size_t>(count));
  auto value = static_cast<std::uint8_t>(37 * from + 11 * to + 1);
  for (std::uint8_t& byte : bytes) byte = value = static_cast<std::uint8_t>(value + 7);
  return bytes;
}

void append(Bytes& all, const Bytes& part) { all.insert(all.end(), part.begin(), part.end()); }

std::int64_t total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// `total` bytes: as equal as can be, and (almost) all of them one rank's.
std::vector<Counts> divisions(std::int64_t total, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  Counts even(n, total / ranks), one(n, 1);
  even[n / 2] += total % ranks;
  one[n - 1] = std::max<std::int64_t>(total - ranks + 1, 0);
  return {even, one};
}

// Thrown, so that the other ranks end too.
void expect_same(const Bytes& actual, const Bytes& expected, const char* what) {
  if (actual != expected)
    throw std::runtime_error(std::string(what) + " of " + std::to_string(expected.size()) +
                             " bytes is wrong");
}

class Thresholds : public testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    if (GetParam().hosts == std::string("apart"))
      setenv("SHOAL_NO_HOST_MEMORY", "1", 1);
    else
      setenv("SHOAL_FAKE_HOSTS", GetParam().hosts, 1);
  }
  void TearDown() override {
    unsetenv("SHOAL_NO_HOST_MEMORY");
    unsetenv("SHOAL_FAKE_HOSTS");
  }

  // Calls each(world, bytes) on all ranks, with all sizes.
  template <class Each>
  void at_all_sizes(Each&& each) {
    run_threads(GetParam().ranks, [&](Communicator& world) {
      for (const std::int64_t limit : {56, 256, 4096, 8192, 16'384, 32'768, 65'536, 131'072, 262'144})
        for (const std::int64_t bytes : {limit - 1, limit, limit + 1}) each(world, bytes);
    });
  }
};

TEST_P(Thresholds, BroadcastAndReductions) {
  at_all_sizes([&](Communicator& world, std::int64_t bytes) {
    const Rank last = world.size() - 1;
    const Bytes mine = bytes_of(world.rank(), 0, bytes);
    Bytes largest = bytes_of(0, 0, bytes), data = mine, out(mine.size());
    for (Rank r = 1; r <= last; ++r) {
      const Bytes other = bytes_of(r, 0, bytes);
      for (std::size_t i = 0; i < largest.size(); ++i) largest[i] = std::max(largest[i], other[i]);
    }
    world.broadcast(data, last);
    expect_same(data, bytes_of(last, 0, bytes), "broadcast");
    world.all_reduce(mine, out, Reduction::max);
    expect_same(out, largest, "all_reduce");
    std::ranges::fill(out, std::uint8_t{0});
    world.reduce(mine, out, Reduction::max, last);
    if (world.rank() == last) expect_same(out, largest, "reduce");
    for (const Counts& counts : divisions(bytes, world.size())) {
      const auto begin =
          largest.begin() + std::accumulate(counts.begin(), counts.begin() + world.rank(), std::ptrdiff_t{0});
      const auto count = static_cast<std::ptrdiff_t>(counts[static_cast<std::size_t>(world.rank())]);
      const Bytes in = bytes_of(world.rank(), 0, total(counts));
      Bytes part(static_cast<std::size_t>(count));
      world.reduce_scatter(in, part, counts, Reduction::max);
      expect_same(part, {begin, begin + count}, "reduce_scatter");
    }
  });
}

TEST_P(Thresholds, GatherAndScatter) {
  at_all_sizes([&](Communicator& world, std::int64_t bytes) {
    const Rank me = world.rank(), last = world.size() - 1;
    for (const Counts& counts : divisions(bytes, world.size())) {
      const Bytes mine = bytes_of(me, 0, counts[static_cast<std::size_t>(me)]);
      Bytes everybody;
      for (Rank r = 0; r <= last; ++r) append(everybody, bytes_of(r, 0, counts[static_cast<std::size_t>(r)]));
      Bytes all(everybody.size()), part(mine.size());
      world.all_gather(mine, all, counts);
      expect_same(all, everybody, "all_gather");
      for (const Rank root : {0, last}) {
        std::ranges::fill(all, std::uint8_t{0});
        world.gather(mine, all, counts, root);
        if (me == root) expect_same(all, everybody, "gather");
        std::ranges::fill(part, std::uint8_t{0});
        world.scatter(everybody, part, counts, root);
        expect_same(part, mine, "scatter");
      }
    }
  });
}

// So many bytes from all ranks together to each rank, and from the ranks of a host to each rank.
TEST_P(Thresholds, AllToAll) {
  const int hosts = std::max(1, std::atoi(GetParam().hosts));
  at_all_sizes([&](Communicator& world, std::int64_t bytes) {
    const auto n = static_cast<std::size_t>(world.size());
    for (const std::int64_t to_each : {bytes, bytes * hosts, bytes / world.size()}) {
      const Counts given = divisions(to_each, world.size()).front();  // by sender, to any rank
      Counts send(n, given[static_cast<std::size_t>(world.rank())]), receive = given;
      // (One pair exchanges nothing.)
      if (world.rank() == 0) send.back() = 0;
      if (world.rank() == world.size() - 1) receive.front() = 0;
      Bytes in, expected;
      for (Rank r = 0; r < world.size(); ++r) {
        append(in, bytes_of(world.rank(), r, send[static_cast<std::size_t>(r)]));
        append(expected, bytes_of(r, world.rank(), receive[static_cast<std::size_t>(r)]));
      }
      Bytes out(expected.size());
      world.all_to_all(in, send, out, receive);
      expect_same(out, expected, "all_to_all");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, Thresholds,
                         testing::Values(Place{2, "1"}, Place{5, "1"}, Place{4, "2"}, Place{6, "3"},
                                         Place{7, "2"}, Place{6, "2,interleaved"}, Place{7, "3,interleaved"},
                                         Place{4, "apart"}, Place{7, "apart"}));

}  // namespace
}  // namespace shoal::comm
