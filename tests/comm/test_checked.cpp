// SPDX-License-Identifier: Apache-2.0
// Every mistake that SHOAL_CHECK finds, and that it names both sides on every rank.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {
namespace {

using Counts = std::vector<std::int64_t>;
using Doubles = std::vector<double>;

// Read once a process, by the first job.
[[maybe_unused]] const int deadline_is_short = setenv("SHOAL_TIMEOUT", "2", 1);

// What each rank is told; "" where nothing is wrong. Afterwards the job must still be in order.
std::vector<std::string> told(int ranks, const std::string& level,
                              const std::function<void(Communicator&)>& call, bool goes_on = true) {
  std::vector<std::string> texts(static_cast<std::size_t>(ranks));
  const int code = run({.transport = "threads", .threads = ranks, .check = level}, [&](Communicator& world) {
    try {
      call(world);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      texts[static_cast<std::size_t>(world.rank())] = error.what();
    }
    if (goes_on) {
      EXPECT_EQ(world.all_reduce(1, Reduction::sum), ranks);
    }
    return 0;
  });
  EXPECT_EQ(code, 0);
  return texts;
}

std::string told_alone(const std::string& level, const std::function<void(Communicator&)>& call) {
  return told(1, level, call)[0];
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

struct Mismatch {
  std::string name;
  std::function<void(Communicator&, bool odd)> call;
  std::vector<std::string> parts;  // ODD and OTHER stand for the ranks
};
void PrintTo(const Mismatch& mismatch, std::ostream* out) { *out << mismatch.name; }

Counts counts_of(const Communicator& comm, std::int64_t each) {
  return Counts(static_cast<std::size_t>(comm.size()), each);
}
std::size_t total(const Counts& counts) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) sum += count;
  return static_cast<std::size_t>(sum);
}
// Two of everything; the odd one has another idea of a rank that it is not.
Counts other_counts(const Communicator& comm, bool odd) {
  Counts counts = counts_of(comm, 2);
  if (odd) counts[comm.rank() == 0 ? 1 : 0] = 3;
  return counts;
}

const std::vector<Mismatch> mismatches = {
    {"count",
     [](Communicator& comm, bool odd) { comm.all_reduce(Doubles(odd ? 5 : 4), Reduction::sum); },
     {"all_reduce on ODD: 5 float64, but OTHER calls it with 4 float64", "1st collective"}},
    {"type",
     [](Communicator& comm, bool odd) {
       if (odd) return comm.all_reduce(std::vector<float>(4), Reduction::sum);
       comm.all_reduce(Doubles(4), Reduction::sum);
     },
     {"all_reduce on ODD: 4 float32, but OTHER calls it with 4 float64"}},
    {"reduction",
     [](Communicator& comm, bool odd) { comm.all_reduce(Doubles(4), odd ? Reduction::max : Reduction::sum); },
     {"all_reduce on ODD: max, but OTHER calls it with sum"}},
    {"order",
     [](Communicator& comm, bool odd) {
       comm.barrier();
       comm.barrier();
       Doubles data(2);
       if (odd) return comm.broadcast(data, 0);
       Doubles all(static_cast<std::size_t>(2 * comm.size()));
       comm.all_gather(data, all, counts_of(comm, 2));
     },
     {"ODD calls broadcast (its 3rd collective here), but OTHER calls all_gather"}},
    {"scans",
     [](Communicator& comm, bool odd) {
       Doubles data(1);
       if (odd) return comm.scan(data, data, Reduction::sum);
       comm.exclusive_scan(data, data, Reduction::sum);
     },
     {"ODD calls scan", "OTHER calls exclusive_scan"}},
    {"root of broadcast",
     [](Communicator& comm, bool odd) { comm.broadcast(Doubles(3), odd ? 1 : 0); },
     {"broadcast on ODD: root 1, but OTHER calls it with root 0"}},
    {"length of broadcast",
     [](Communicator& comm, bool odd) { comm.broadcast(Doubles(odd ? 0 : 3), 0); },
     {"broadcast on ODD: 0 float64, but OTHER calls it with 3 float64"}},
    {"root of reduce",
     [](Communicator& comm, bool odd) {
       Doubles out(2);
       comm.reduce(Doubles(2), out, Reduction::sum, odd ? 1 : 0);
     },
     {"reduce on ODD: root 1, but OTHER calls it with root 0"}},
    {"counts of all_gather",
     [](Communicator& comm, bool odd) {
       const Counts counts = other_counts(comm, odd);
       Doubles all(total(counts));
       comm.all_gather(Doubles(2), all, counts);
     },
     {"all_gather on", "counts[", "is 3", "with 2", "ODD", "OTHER"}},
    {"counts of reduce_scatter",
     [](Communicator& comm, bool odd) {
       const Counts counts = other_counts(comm, odd);
       Doubles out(2);
       comm.reduce_scatter(Doubles(total(counts)), out, counts, Reduction::sum);
     },
     {"reduce_scatter on", "counts[", "ODD", "OTHER"}},
    {"type of gather",
     [](Communicator& comm, bool odd) {
       Doubles all(static_cast<std::size_t>(comm.size()));
       std::vector<float> floats(all.size());
       if (odd) return comm.gather(std::vector<float>(1), floats, counts_of(comm, 1), 0);
       comm.gather(Doubles(1), all, counts_of(comm, 1), 0);
     },
     {"gather on ODD: float32, but OTHER calls it with float64"}},
    {"root of scatter",
     [](Communicator& comm, bool odd) {
       Doubles out(1);
       comm.scatter(Doubles(static_cast<std::size_t>(comm.size())), out, counts_of(comm, 1), odd ? 1 : 0);
     },
     {"scatter on ODD: root 1, but OTHER calls it with root 0"}},
    {"counts of all_to_all",
     [](Communicator& comm, bool odd) {
       const Counts sent = other_counts(comm, odd), received = counts_of(comm, 2);
       Doubles out(total(received));
       comm.all_to_all(Doubles(total(sent)), sent, out, received);
     },
     {"all_to_all: ODD sends 3 elements to OTHER, which expects 2"}},
    {"started",
     [](Communicator& comm, bool odd) {
       Doubles data(odd ? 5 : 4);
       comm.all_reduce_async(data, Reduction::sum).wait();
     },
     {"all_reduce on ODD: 5 float64, but OTHER calls it with 4 float64"}},
    {"size of an allocation",
     [](Communicator& comm, bool odd) { (void)comm.allocate(odd ? 384 : 512); },
     {"allocate on ODD: 384 bytes, but OTHER calls it with 512 bytes"}},
    {"order of allocations",
     [](Communicator& comm, bool odd) {
       if (odd) return comm.barrier();
       (void)comm.allocate(512);
     },
     {"ODD calls barrier", "OTHER calls allocate"}},
};

class Mismatches : public testing::TestWithParam<Mismatch> {};

TEST_P(Mismatches, EveryRankIsToldBothSides) {
  for (const int ranks : {2, 3})
    for (const Rank odd : {ranks - 1, ranks == 3 ? 0 : 1}) {
      const std::vector<std::string> texts = told(
          ranks, "communicating", [&](Communicator& world) { GetParam().call(world, world.rank() == odd); });
      for (const std::string& text : texts) {
        EXPECT_EQ(text, texts[0]);
        for (std::string part : GetParam().parts) {
          for (const auto& [word, rank] : {std::pair{"ODD", odd}, std::pair{"OTHER", odd == 0 ? 1 : 0}})
            if (const std::size_t at = part.find(word); at != std::string::npos) {
              // The host's name follows the rank's number: compare what stands before and after it.
              expect_parts(text, {part.substr(0, at) + "rank " + std::to_string(rank) + " ("});
              part = part.substr(at + std::string(word).size());
            }
          expect_parts(text, {part});
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Checked, Mismatches, testing::ValuesIn(mismatches), [](const auto& mismatch) {
  std::string name = mismatch.param.name;
  for (char& c : name)
    if (c == ' ') c = '_';
  return name;
});

TEST(Checked, WhatIsRightPasses) {
  const std::vector<std::string> texts = told(3, "communicating", [](Communicator& world) {
    // Only what must be equal is compared: here counts, buffers and types of the others do not matter.
    std::vector<float> unused;
    Doubles all(6);
    world.gather(Doubles(2), world.rank() == 0 ? all : Doubles(), counts_of(world, 2), 0);
    if (world.rank() == 0)
      world.reduce(Doubles(2), Doubles(2), Reduction::sum, 0);
    else
      world.reduce(Doubles(2), unused, Reduction::sum, 0);
    const Counts to = {world.rank(), 1, 2};
    const Counts from = world.rank() == 0 ? Counts{0, 1, 2} : Counts(3, world.rank());
    Doubles out(total(from));
    world.all_to_all(Doubles(total(to)), to, out, from);
  });
  for (const std::string& text : texts) EXPECT_EQ(text, "");
}

TEST(Checked, APartOfTheJobNamesRanksAndPes) {
  const std::vector<std::string> texts = told(3, "communicating", [](Communicator& world) {
    std::optional<Communicator> part = world.split(world.rank() == 0 ? -1 : 0, -world.rank());  // PEs 2, 1
    if (part) part->all_reduce(Doubles(world.rank() == 1 ? 7 : 6), Reduction::sum);
  });
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(texts[1], texts[2]);
  expect_parts(texts[1], {"all_reduce on rank 1 (PE 1 on ", "7 float64, but rank 0 (PE 2 on ", "6 float64"});
}

TEST(Checked, AMessageOfAnotherLengthOrTypeIsNamedAtTheReceiver) {
  enum class Sent { three_doubles, four_floats, two_integers };
  const auto text_of = [](const std::function<void(Communicator&)>& receive, Sent sent) {
    return told(
        2, "communicating",
        [&](Communicator& world) {
          if (world.rank() == 1) return receive(world);
          if (sent == Sent::four_floats) return world.send(std::vector<float>(4), 1, 7);
          if (sent == Sent::two_integers) return world.send(Counts(2), 1, 7);
          world.send(Doubles(3), 1, 7);
        },
        false)[1];
  };
  const std::vector<std::string> longer = {"on rank 1 (", "2 float64, but rank 0 (",
                                           "sends 3 float64 (tag 7)"};
  const auto recv = [](Communicator& world) { world.recv(Doubles(2), 0, 7); };
  const auto recv_async = [](Communicator& world) {
    Doubles data(2);
    world.recv_async(data, 0, 7).wait();
  };
  const auto exchange = [](Communicator& world) {
    Doubles data(2);
    const Part part = Communicator::part(0, data);
    world.exchange({}, std::span(&part, 1), 7);
  };
  expect_parts(text_of(recv, Sent::three_doubles), longer);
  expect_parts(text_of(recv_async, Sent::three_doubles), longer);
  expect_parts(text_of(exchange, Sent::three_doubles), longer);
  // As many bytes, so that the transport sees nothing wrong.
  expect_parts(text_of(recv, Sent::two_integers), {"2 float64, but rank 0 (", "sends 2 int64 (tag 7)"});
  expect_parts(text_of(recv, Sent::four_floats),
               {"recv on rank 1 (", "2 float64, but rank 0 (", "sends 4 float32 (tag 7)"});
}

TEST(Checked, MessagesThatFitPass) {
  const std::vector<std::string> texts = told(3, "communicating", [](Communicator& world) {
    const Rank next = (world.rank() + 1) % 3, previous = (world.rank() + 2) % 3;
    Doubles in(2, world.rank()), out(2);
    std::vector<Request> requests;
    for (int tag = 0; tag < 3; ++tag) {  // received in another order than sent
      requests.push_back(world.send_async(in, next, tag));
      world.sendrecv(in, next, out, previous, 9);
    }
    for (const int tag : {2, 0, 1}) {
      Doubles late(2);
      world.recv(late, previous, tag);
      EXPECT_EQ(late[1], previous);
    }
    wait_all(requests);
  });
  for (const std::string& text : texts) EXPECT_EQ(text, "");
}

TEST(Checked, ARankThatDoesNotComeIsNamedWithTheCall) {
  std::string text;
  run({.transport = "threads", .threads = 2, .check = "communicating"}, [&](Communicator& world) {
    if (world.rank() == 1) return 0;
    try {
      world.all_reduce(Doubles(2), Reduction::sum);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timeout);
      text = error.what();
    }
    return 0;
  });
  expect_parts(text, {"all_reduce on rank 0 (", "not all ranks call it", "1 ("});
}

TEST(Checked, NullPointersAndOverlaps) {
  Doubles data(8);
  const View<double> null(nullptr, 3), low(data.data(), 4), shifted(data.data() + 1, 4),
      high(data.data() + 4, 4);
  const Counts four = {4};
  const auto light = [](const std::function<void(Communicator&)>& call) { return told_alone("light", call); };
  expect_parts(light([&](Communicator& comm) { comm.broadcast(null, 0); }),
               {"broadcast on rank 0: the recv buffer is a null pointer, but has 3 float64"});
  expect_parts(light([&](Communicator& comm) { comm.sendrecv(null, 0, View<double>(data.data(), 3), 0); }),
               {"exchange on rank 0: the send buffer is a null pointer"});
  expect_parts(light([&](Communicator& comm) { comm.all_reduce(low, shifted, Reduction::sum); }),
               {"all_reduce on rank 0: in and out overlap: they may be the same memory, or apart"});
  expect_parts(light([&](Communicator& comm) { comm.all_to_all(low, four, low, four); }),
               {"all_to_all on rank 0: in and out overlap"});
  expect_parts(light([&](Communicator& comm) { comm.all_gather(low, shifted, four); }),
               {"all_gather on rank 0: in overlaps out, but is not its own place there (element 0)"});
  expect_parts(light([&](Communicator& comm) { comm.scatter(low, shifted, four, 0); }),
               {"scatter on rank 0: out overlaps in"});
  expect_parts(light([&](Communicator& comm) { comm.gather(low, std::vector<float>(4), four, 0); }),
               {"gather on rank 0: float64 in, float32 out"});
  EXPECT_EQ(light([&](Communicator& comm) {
              comm.all_reduce(low, Reduction::sum);
              comm.all_gather(low, low, four);
              comm.gather(low, low, four, 0);
              comm.scatter(low, low, four, 0);
              comm.all_to_all(low, four, high, four);
              comm.broadcast(View<double>(nullptr, 0), 0);
            }),
            "");
}

TEST(Checked, PartsOfAnExchangeThatOverlap) {
  Doubles data(8), other(8);
  const auto exchange = [&](std::size_t first, std::size_t second, Doubles& sent) {
    return told_alone("normal", [&](Communicator& comm) {
      const std::vector<Part> sends(2, Communicator::part(0, View<double>(sent.data(), 2)));
      const std::vector<Part> receives = {Communicator::part(0, View<double>(data.data() + first, 2)),
                                          Communicator::part(0, View<double>(data.data() + second, 2))};
      comm.exchange(sends, receives);
    });
  };
  expect_parts(exchange(3, 4, other), {"exchange on rank 0: a receive overlaps another part"});
  expect_parts(exchange(1, 4, data), {"exchange on rank 0: a receive overlaps another part"});
  EXPECT_EQ(exchange(4, 2, other), "");  // and both sends are the same memory
}

TEST(Checked, MemoryThatIsStillInUse) {
  const std::vector<std::string> texts = told(2, "heavy", [](Communicator& world) {
    Doubles data(4), apart(4), out(4);
    std::vector<Request> readers;
    readers.push_back(world.all_reduce_async(data, out, Reduction::sum));
    readers.push_back(world.all_reduce_async(data, apart, Reduction::sum));
    wait_all(readers);
    Request request = world.all_reduce_async(data, Reduction::sum);
    std::string text;
    try {
      world.broadcast(View<double>(data.data() + 3, 1), 0);
    } catch (const Error& error) {
      text = error.what();
    }
    request.wait();
    world.broadcast(data, 0);
    if (!text.empty()) fail(ErrorCode::invalid_argument, text);
  });
  for (int rank = 0; rank < 2; ++rank)
    expect_parts(texts[static_cast<std::size_t>(rank)],
                 {"broadcast (1 float64) on rank " + std::to_string(rank) + " (",
                  "in use by all_reduce (4 float64), which was started and not waited for"});
}

TEST(Checked, OffsetsIntoSymmetricMemory) {
  const std::vector<double> two(2);
  const auto with_memory = [&](const std::function<void(SymmetricMemory&)>& call) {
    return told_alone("heavy", [&](Communicator& comm) { call(*comm.allocate(128)); });
  };
  expect_parts(with_memory([&](SymmetricMemory& m) { m.put(0, 120, two.data(), 16); }),
               {"put on rank 0 (", "bytes 120 to 136 are past the end of an allocation of 128"});
  expect_parts(with_memory([&](SymmetricMemory& m) { m.put(1, 0, two.data(), 16); }),
               {"rank 1 is not in a communicator of 1"});
  expect_parts(with_memory([&](SymmetricMemory& m) { m.put_signal(0, 0, two.data(), 16, 20, 1); }),
               {"signal offset 20 is no multiple of 8"});
  expect_parts(with_memory([&](SymmetricMemory& m) { m.put_signal(0, 0, two.data(), 16, 8, 1); }),
               {"the signal at 8 lies within the data, bytes 0 to 16"});
  expect_parts(with_memory([&](SymmetricMemory& m) { m.put(0, 0, nullptr, 16); }), {"a null pointer"});
  expect_parts(with_memory([&](SymmetricMemory& m) {
                 Doubles back(17);
                 m.get(0, 0, back.data(), 136);
               }),
               {"get on rank 0 (", "past the end"});
  EXPECT_EQ(with_memory([&](SymmetricMemory& m) { m.put_signal(0, 112, two.data(), 16, 104, 1); }), "");
}

TEST(CheckedDeathTest, ADroppedRequestNamesItself) {
  const auto drop = [](const char* level) {
    run({.transport = "threads", .threads = 1, .check = level}, [](Communicator& world) {
      Doubles data(4);
      (void)world.all_reduce_async(data, Reduction::sum);
      return 0;
    });
  };
  EXPECT_DEATH(drop("normal"), "all_reduce \\(4 float64\\) on rank 0 \\(.*its Request was dropped");
}

TEST(Checked, LevelsComeFromOptionsAndEnvironment) {
  const auto overlaps = [](const std::string& level) {
    return told_alone(level, [](Communicator& comm) {
      Doubles data(3);
      comm.all_reduce(View<double>(data.data(), 2), View<double>(data.data() + 1, 2), Reduction::sum);
    });
  };
  unsetenv("SHOAL_CHECK");
  EXPECT_EQ(overlaps(""), "");
  EXPECT_EQ(overlaps("off"), "");
  setenv("SHOAL_CHECK", "normal", 1);
  EXPECT_NE(overlaps(""), "");
  EXPECT_EQ(overlaps("off"), "");  // options win
  setenv("SHOAL_CHECK", "strict", 1);
  try {
    overlaps("");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "SHOAL_CHECK=strict: give off, light, normal, heavy or communicating");
  }
  EXPECT_THROW(run_threads(1, [](Communicator&) {}), Error);
  unsetenv("SHOAL_CHECK");
}

}  // namespace
}  // namespace shoal::comm
