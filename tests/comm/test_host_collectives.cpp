// SPDX-License-Identifier: Apache-2.0
// Collectives in shared memory, over threads, with chunks so small that every boundary is met.
#include "comm/host_collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {
namespace {

using Limits = HostCollectives::Limits;
using Counts = std::vector<std::int64_t>;
using Values = std::vector<float>;

Group group_of(const Communicator& world) {
  Group group;
  group.rank = world.rank();
  for (Rank r = 0; r < world.size(); ++r) group.world_rank.push_back(r);
  return group;
}

// Every rank takes a slot, tells the others, and opens.
std::optional<HostArena::Lease> lease_of(Communicator& world, HostArena& arena) {
  const Group group = group_of(world);
  const HostArena::Offer mine = arena.take(group.world_rank, false);
  std::vector<HostArena::Offer> offers(group.world_rank.size());
  const Counts counts(offers.size(), sizeof mine);
  world.all_gather(std::span(reinterpret_cast<const std::byte*>(&mine), sizeof mine),
                   std::span(reinterpret_cast<std::byte*>(offers.data()), sizeof mine * offers.size()),
                   counts);
  const bool all = std::ranges::all_of(offers, [](const HostArena::Offer& offer) { return offer.slot >= 0; });
  if (all) return arena.open(group.world_rank, group.rank, offers);
  arena.withdraw(mine);
  return std::nullopt;
}

std::unique_ptr<HostCollectives> make(Communicator& world, HostArena& arena, std::size_t chunk_bytes,
                                      std::size_t one_shot_bytes) {
  return std::make_unique<HostCollectives>(world.transport(), group_of(world), *lease_of(world, arena),
                                           Limits{.chunk_bytes = chunk_bytes,
                                                  .crowded_chunk_bytes = chunk_bytes,
                                                  .one_shot_bytes = one_shot_bytes,
                                                  .lent_bytes = 400,
                                                  .crowded_lent_bytes = 400,
                                                  .lent_broadcast_bytes = 400,
                                                  .lent_reduce_bytes = 400,
                                                  .parts_reduce_bytes = 2000,
                                                  .lent_piece_bytes = 48,
                                                  .shared_piece_bytes = 192});
}

std::vector<PeerMemory::Window*> windows_of(const Communicator& world, SymmetricMemory& memory) {
  std::vector<PeerMemory::Window*> windows;
  for (Rank r = 0; r < world.size(); ++r)
    windows.push_back(reinterpret_cast<PeerMemory::Window*>(memory.direct(r)));
  return windows;
}

template <class T>
Buffer buffer(std::vector<T>& values) {
  return erase(View<T>(values));
}

float value(Rank rank, std::size_t i) {
  return static_cast<float>((rank + 1) * 1000) + static_cast<float>(i % 900);
}
Values values(Rank rank, std::size_t n, std::size_t first = 0) {
  Values all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = value(rank, first + i);
  return all;
}
Values sums(Rank ranks, std::size_t n, std::size_t first = 0) {
  Values all(n);
  for (Rank r = 0; r < ranks; ++r)
    for (std::size_t i = 0; i < n; ++i) all[i] += value(r, first + i);
  return all;
}

void check_reductions(Communicator& world, HostCollectives& host, std::size_t n) {
  const Rank me = world.rank(), size = world.size();
  Values in = values(me, n), out(n);
  host.run({.pattern = Pattern::all_reduce, .send = buffer(in), .recv = buffer(out)});
  EXPECT_EQ(out, sums(size, n));
  Values in_place = in;
  host.run({.pattern = Pattern::all_reduce, .send = buffer(in_place), .recv = buffer(in_place)});
  EXPECT_EQ(in_place, sums(size, n));
  for (Rank root = 0; root < size; ++root) {
    std::ranges::fill(out, -1.0f);
    host.run({.pattern = Pattern::reduce, .peer = root, .send = buffer(in), .recv = buffer(out)});
    EXPECT_EQ(out, me == root ? sums(size, n) : Values(n, -1.0f));
  }
  host.run({.pattern = Pattern::scan, .send = buffer(in), .recv = buffer(out)});
  EXPECT_EQ(out, sums(me + 1, n));
  host.run({.pattern = Pattern::exclusive_scan, .send = buffer(in), .recv = buffer(out)});
  EXPECT_EQ(out, sums(me, n));
}

void check_moves(Communicator& world, HostCollectives& host, std::size_t n) {
  const Rank me = world.rank(), size = world.size();
  // Rank r's part has n + r elements, rank 1's none.
  Counts counts;
  for (Rank r = 0; r < size; ++r) counts.push_back(r == 1 ? 0 : static_cast<std::int64_t>(n) + r);
  const auto total = static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  const auto mine = static_cast<std::size_t>(counts[static_cast<std::size_t>(me)]);
  const auto before =
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.begin() + me, std::int64_t{0}));
  Values in = values(me, mine), all(total), gathered;
  for (Rank r = 0; r < size; ++r) {
    const Values part = values(r, static_cast<std::size_t>(counts[static_cast<std::size_t>(r)]));
    gathered.insert(gathered.end(), part.begin(), part.end());
  }
  host.run({.pattern = Pattern::all_gather, .send = buffer(in), .recv = buffer(all), .counts = counts});
  EXPECT_EQ(all, gathered);
  Values whole = values(me, total), part(mine);
  host.run(
      {.pattern = Pattern::reduce_scatter, .send = buffer(whole), .recv = buffer(part), .counts = counts});
  EXPECT_EQ(part, sums(size, mine, before));
  for (Rank root = 0; root < size; ++root) {
    std::ranges::fill(all, 0.0f);
    host.run({.pattern = Pattern::gather,
              .peer = root,
              .send = buffer(in),
              .recv = buffer(all),
              .counts = counts});
    EXPECT_EQ(all, me == root ? gathered : Values(total));
    std::ranges::fill(part, 0.0f);
    host.run({.pattern = Pattern::scatter,
              .peer = root,
              .send = buffer(whole),
              .recv = buffer(part),
              .counts = counts});
    EXPECT_EQ(part, values(root, mine, before));
    Values word = me == root ? values(root, n) : Values(n);
    host.run({.pattern = Pattern::broadcast, .peer = root, .send = buffer(word), .recv = buffer(word)});
    EXPECT_EQ(word, values(root, n));
  }
}

// From a to b go n * (a + 1) elements, and none to the next rank.
void check_all_to_all(Communicator& world, HostCollectives& host, std::size_t n) {
  const Rank me = world.rank(), size = world.size();
  const auto length = [&](Rank a, Rank b) {
    return b == (a + 1) % size ? 0 : static_cast<std::int64_t>(n) * (a + 1);
  };
  Counts out, in;
  Values sent, expected;
  for (Rank r = 0; r < size; ++r) {
    out.push_back(length(me, r));
    in.push_back(length(r, me));
    const Values to = values(me, static_cast<std::size_t>(out.back()), static_cast<std::size_t>(r) * 100);
    const Values from = values(r, static_cast<std::size_t>(in.back()), static_cast<std::size_t>(me) * 100);
    sent.insert(sent.end(), to.begin(), to.end());
    expected.insert(expected.end(), from.begin(), from.end());
  }
  Values received(expected.size());
  host.run({.pattern = Pattern::all_to_all,
            .send = buffer(sent),
            .recv = buffer(received),
            .counts = out,
            .recv_counts = in});
  EXPECT_EQ(received, expected);
}

TEST(HostCollectives, EveryPatternAtEveryChunkBoundary) {
  for (const int ranks : {2, 3, 4})
    run_threads(ranks, [](Communicator& world) {
      HostArena arena(world.allocate(HostArena::footprint()));
      for (const std::size_t one_shot : {std::size_t{0}, std::size_t{1} << 30}) {
        const auto host = make(world, arena, 256, one_shot);  // 64 floats a step
        for (const std::size_t n : {0, 1, 13, 14, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000}) {
          check_reductions(world, *host, n);
          check_moves(world, *host, n);
          check_all_to_all(world, *host, n);
          host->run({.pattern = Pattern::barrier});
        }
      }
    });
}

// Where each can read the others' memory: parts of less and of more than what is lent, in one operation.
TEST(HostCollectives, LentDataArrivesAndIsFreeAfterwards) {
  for (const int ranks : {2, 3, 4})
    run_threads(ranks, [](Communicator& world) {
      HostArena arena(world.allocate(HostArena::footprint()));
      const auto memory = world.allocate(sizeof(PeerMemory::Window));
      const PeerMemory lent(world.transport().world(), windows_of(world, *memory), true);
      const auto host = make(world, arena, 256, 64);
      host->lend(lent);
      for (const std::size_t n : {98, 99, 100, 101, 1000}) {
        check_reductions(world, *host, n);
        check_moves(world, *host, n);
        check_all_to_all(world, *host, n);
      }
      // What was lent is written again at once.
      Values data = values(world.rank(), 500), all(500 * static_cast<std::size_t>(world.size()));
      const Counts counts(static_cast<std::size_t>(world.size()), 500);
      for (int round = 0; round < 50; ++round) {
        std::ranges::fill(data, static_cast<float>(round + world.rank()));
        host->run(
            {.pattern = Pattern::all_gather, .send = buffer(data), .recv = buffer(all), .counts = counts});
        std::ranges::fill(data, -1.0f);
        for (std::size_t i = 0; i < all.size(); ++i)
          ASSERT_EQ(all[i], static_cast<float>(round) + static_cast<float>(i / 500));
      }
      world.barrier();
    });
}

// Sums of floats whose bits depend on the order, in parts, in one go, and lent.
TEST(HostCollectives, SumsRunInRankOrder) {
  run_threads(4, [](Communicator& world) {
    HostArena arena(world.allocate(HostArena::footprint()));
    const auto term = [](Rank r, std::size_t i) {
      return (r % 2 ? -1.0f : 1.0f) * 1e7f / static_cast<float>(r + 1) + static_cast<float>(i) * 0.37f;
    };
    const auto memory = world.allocate(sizeof(PeerMemory::Window));
    const PeerMemory lent(world.transport().world(), windows_of(world, *memory), true);
    for (int way = 0; way < 3; ++way) {
      const auto host = make(world, arena, 512, way == 0 ? 0 : std::size_t{1} << 30);
      if (way == 2) host->lend(lent);
      Values data(700), expected(700);
      for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = term(world.rank(), i);
        expected[i] = term(0, i);
        for (Rank r = 1; r < world.size(); ++r) expected[i] += term(r, i);
      }
      host->run({.pattern = Pattern::all_reduce, .send = buffer(data), .recv = buffer(data)});
      EXPECT_EQ(data, expected);
    }
    world.barrier();
  });
}

TEST(HostCollectives, StartedOperationsRunInOrderWhateverIsWaitedForFirst) {
  run_threads(3, [](Communicator& world) {
    HostArena arena(world.allocate(HostArena::footprint()));
    const auto host = make(world, arena, 256, 1024);
    std::vector<Values> data;
    std::vector<std::unique_ptr<Exchange>> started;
    for (std::size_t k = 0; k < 40; ++k) data.push_back(values(world.rank() + static_cast<Rank>(k), 10 * k));
    for (std::size_t k = 0; k < data.size(); ++k)
      started.push_back(
          host->start({.pattern = Pattern::all_reduce, .send = buffer(data[k]), .recv = buffer(data[k])}));
    Values last = values(world.rank(), 200);  // comes after all of them
    host->run({.pattern = Pattern::all_reduce, .send = buffer(last), .recv = buffer(last)});
    EXPECT_EQ(last, sums(3, 200));
    std::ranges::reverse(started);
    for (const auto& exchange : started) EXPECT_TRUE(exchange->done());
    for (std::size_t k = 0; k < data.size(); ++k)
      for (std::size_t i = 0; i < data[k].size(); ++i) {
        const auto shift = static_cast<Rank>(k);
        ASSERT_EQ(data[k][i], value(shift, i) + value(shift + 1, i) + value(shift + 2, i));
      }
  });
}

TEST(HostCollectives, GroupsDoNotDisturbEachOther) {
  run_threads(3, [](Communicator& world) {
    HostArena arena(world.allocate(HostArena::footprint()));
    const auto first = make(world, arena, 256, 64), second = make(world, arena, 512, 64);
    for (int round = 0; round < 50; ++round) {
      Values a = values(world.rank(), 300), b = values(world.rank() + 1, 301);
      const auto in_first =
          first->start({.pattern = Pattern::all_reduce, .send = buffer(a), .recv = buffer(a)});
      const auto in_second =
          second->start({.pattern = Pattern::all_reduce, .send = buffer(b), .recv = buffer(b)});
      // Looked at in another order on each rank.
      const bool swap = world.rank() == round % 3;
      bool done = false;
      while (!done) {
        const bool one = (swap ? in_second : in_first)->done(), other = (swap ? in_first : in_second)->done();
        done = one && other;
        std::this_thread::yield();
        world.transport().progress();
      }
      EXPECT_EQ(a, sums(3, 300));
      EXPECT_EQ(b[300], value(1, 300) + value(2, 300) + value(3, 300));
    }
  });
}

TEST(HostCollectives, AnotherOperationOnAPeerIsAnError) {
  std::atomic<int> errors = 0;
  const auto rank_main = [&](Communicator& world) {
    HostArena arena(world.allocate(HostArena::footprint()));
    const auto host = make(world, arena, 256, 64);
    Values data(world.rank() == 0 ? 3 : 4);
    try {
      host->run({.pattern = Pattern::all_reduce, .send = buffer(data), .recv = buffer(data)});
    } catch (const Error& error) {
      if (error.code() == ErrorCode::invalid_argument) ++errors;
      throw;
    }
  };
  EXPECT_THROW(run_threads(2, rank_main), Error);
  EXPECT_GE(errors, 1);
}

TEST(HostArena, SlotsComeBackWhenAllMembersHaveClosed) {
  run_threads(2, [](Communicator& world) {
    HostArena arena(world.allocate(HostArena::footprint()));
    for (int i = 0; i < 200; ++i) {
      const auto host = make(world, arena, 256, 64);
      EXPECT_EQ(host->chunk_bytes(), 256u);
      Values data = values(world.rank(), 5);
      host->run({.pattern = Pattern::all_reduce, .send = buffer(data), .recv = buffer(data)});
      ASSERT_EQ(data, sums(2, 5));
    }
    std::vector<HostArena::Lease> leases;
    while (std::optional<HostArena::Lease> lease = lease_of(world, arena))
      leases.push_back(std::move(*lease));
    EXPECT_GT(leases.size(), 10u);
    leases.clear();
    world.barrier();
    EXPECT_TRUE(lease_of(world, arena).has_value());
    world.barrier();
  });
}

// More groups than slots: the others use messages.
TEST(HostArena, GroupsWithoutASlotWorkAllTheSame) {
  run_threads(3, [](Communicator& world) {
    std::vector<Communicator> groups;
    for (int i = 0; i < 80; ++i) groups.push_back(world.duplicate());
    for (Communicator& group : groups) EXPECT_EQ(group.all_reduce(1, Reduction::sum), 3);
    for (int i = 0; i < 300; ++i) EXPECT_EQ(world.split(i % 2)->all_reduce(1, Reduction::sum), 3);
  });
}

}  // namespace
}  // namespace shoal::comm
