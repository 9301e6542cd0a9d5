// SPDX-License-Identifier: Apache-2.0
// The timeline and the table of SHOAL_TRACE.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "comm/decorators/trace.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/comm/symmetric_segments.h"

namespace shoal::comm {
namespace {

using nlohmann::json;

class Traced : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("shoal-trace-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name = "trace.json") const { return (folder_ / name).string(); }
  static json read(const std::string& path) {
    std::ifstream in(path);
    return json::parse(in)["traceEvents"];
  }

 private:
  std::filesystem::path folder_;
};

void work(Communicator& world) {
  std::vector<double> data(100);
  for (int i = 0; i < 5; ++i) world.all_reduce(data, Reduction::sum);
  world.broadcast(data, 1);
  std::vector<Request> requests;
  requests.push_back(world.all_reduce_async(data, Reduction::sum));
  std::vector<float> other(7);
  requests.push_back(world.broadcast_async(other, 0));
  wait_all(requests);
  SymmetricSegments<double> segments(world, 4);
  const Rank next = (world.rank() + 1) % world.size();
  if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  segments.put(next, 0, View<const double>(data.data(), 4), 1);
  segments.wait((world.rank() + world.size() - 1) % world.size(), 1);
  world.barrier();
}

struct Seen {
  std::map<std::string, int> calls;  // by name
  std::set<std::string> open;        // identities of started operations
  int spans = 0;
  double first = 1e300, last = 0;  // us
};

Seen look_at(const json& events, int rank) {
  Seen seen;
  for (const json& event : events) {
    if (event["pid"] != rank || event["ph"] == "M") continue;
    const double begin = event["ts"], end = begin + event.value("dur", 0.0);
    seen.first = std::min(seen.first, begin);
    seen.last = std::max(seen.last, end);
    EXPECT_GE(event.value("dur", 0.0), 0.0);
    if (event["ph"] == "X") ++seen.calls[event["name"]];
    if (event["ph"] == "b") {
      EXPECT_TRUE(seen.open.insert(event["id"]).second);
    } else if (event["ph"] == "e") {
      EXPECT_EQ(seen.open.erase(event["id"]), 1u);
      ++seen.spans;
    }
  }
  return seen;
}

TEST_F(Traced, TheTimelineHasTheEventsOfEveryRank) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run({.transport = "threads", .threads = 3, .trace = path()},
                [](Communicator& world) { return work(world), 0; }),
            0);
  const std::string table = testing::internal::GetCapturedStderr();
  const json events = read(path());
  for (int rank = 0; rank < 3; ++rank) {
    const Seen seen = look_at(events, rank);
    EXPECT_EQ(seen.calls.at("all_reduce"), 5);
    EXPECT_EQ(seen.calls.at("broadcast"), 1);
    EXPECT_EQ(seen.calls.at("start all_reduce"), 1);
    EXPECT_EQ(seen.calls.at("wait for broadcast"), 1);
    EXPECT_EQ(seen.calls.at("put"), 1);
    EXPECT_EQ(seen.calls.at("barrier"), 1);
    EXPECT_EQ(seen.spans, 2);
    EXPECT_TRUE(seen.open.empty()) << "unbalanced";
    EXPECT_GE(seen.first, -1e6);
    EXPECT_LT(seen.last - seen.first, 60e6);
  }
  EXPECT_GE(look_at(events, 1).calls.at("wait for a signal"), 1);  // for rank 0, which came late
  EXPECT_NE(table.find("trace of 3 ranks in " + path()), std::string::npos) << table;
  EXPECT_NE(table.find("\nall_reduce              18           14400 "), std::string::npos) << table;
}

TEST_F(Traced, EventsSayWhatWasCalled) {
  testing::internal::CaptureStderr();
  setenv("SHOAL_TRACE", path().c_str(), 1);
  run_threads(2, [](Communicator& world) {
    std::vector<float> data(25);
    Communicator other = world.duplicate();
    other.broadcast(data, 1);
    if (world.rank() == 0)
      world.send(data, 1);
    else
      world.recv(data, 0);
  });
  unsetenv("SHOAL_TRACE");
  testing::internal::GetCapturedStderr();
  int found = 0, names = 0;
  for (const json& event : read(path())) {
    if (event["name"] == "process_name") {
      EXPECT_EQ(event["args"]["name"].get<std::string>().find("rank " + event["pid"].dump() + " on "), 0u);
      ++names;
    }
    const json& args = event["args"];
    if (event["name"] == "broadcast") {
      EXPECT_EQ(args["root"], 1);
      EXPECT_EQ(args["dtype"], "float32");
      EXPECT_EQ(args["communicator"], 1);
      EXPECT_EQ(args["bytes"], event["pid"] == 1 ? 100 : 0);
      ++found;
    } else if (event["name"] == "send") {
      EXPECT_EQ(args["peer"], 1);
      EXPECT_EQ(args["bytes"], 100);
      ++found;
    }
  }
  EXPECT_EQ(found, 3);
  EXPECT_EQ(names, 2);
}

TEST_F(Traced, AJobThatEndsEarlyLeavesTheRanksParts) {
  testing::internal::CaptureStderr();
  EXPECT_NE(run({.transport = "threads", .threads = 2, .trace = path()},
                [](Communicator& world) {
                  world.barrier();
                  if (world.rank() == 1) throw std::runtime_error("enough");
                  for (;;) world.barrier();
                  return 0;
                }),
            0);
  const std::string text = testing::internal::GetCapturedStderr();
  for (int rank = 0; rank < 2; ++rank) {
    const std::string part = path() + ".rank" + std::to_string(rank);
    EXPECT_NE(text.find("the trace of rank " + std::to_string(rank) + " is in " + part), std::string::npos)
        << text;
    EXPECT_GE(look_at(read(part), rank).calls.at("barrier"), 1);  // also one that did not come to its end
  }
}

TEST_F(Traced, AFileThatCannotBeWrittenIsAnErrorAtTheStart) {
  testing::internal::CaptureStderr();
  bool began = false;
  EXPECT_EQ(run({.transport = "threads", .threads = 2, .trace = path("no/such/folder.json")},
                [&](Communicator&) {
                  began = true;
                  return 0;
                }),
            1);
  EXPECT_FALSE(began);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("folder.json: No such file or directory"),
            std::string::npos);
}

TEST(TraceLog, ForgetsTheOldestAndCountsThem) {
  TraceLog log;
  for (std::size_t i = 0; i < TraceLog::capacity + 10; ++i)
    log.record({.begin_ns = static_cast<std::int64_t>(i), .duration_ns = 1, .bytes = 2, .call = Call::put});
  const std::vector<TraceEvent> events = log.events();
  EXPECT_EQ(events.size(), TraceLog::capacity);
  EXPECT_EQ(log.dropped(), 10u);
  EXPECT_EQ(events.front().begin_ns, 10);
  EXPECT_EQ(events.back().begin_ns, static_cast<std::int64_t>(TraceLog::capacity + 9));
  EXPECT_EQ(log.totals()[index_of(Call::put)].calls, TraceLog::capacity + 10);  // these are complete
  EXPECT_EQ(log.totals()[index_of(Call::put)].bytes, 2 * (TraceLog::capacity + 10));
}

}  // namespace
}  // namespace shoal::comm
