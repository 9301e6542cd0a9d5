// SPDX-License-Identifier: Apache-2.0
// failing TRANSPORT RANKS WHAT WHO: a job in which rank WHO goes wrong. What is expected of each is in
// test_failures.cpp.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/comm/symmetric_segments.h"

using namespace shoal;

namespace {

int body(comm::Communicator& world, const std::string& what, int who) {
  const bool me = world.rank() == who;
  if (what == "nothing") {
    world.barrier();
  } else if (what == "throw") {
    world.barrier();
    if (me) throw std::runtime_error("the sky is falling");
    world.barrier();
  } else if (what == "agree") {
    comm::agree(world, [&] {
      if (me) fail(ErrorCode::io, "the disk is full");
    });
  } else if (what == "length") {
    const int peer = (who + 1) % world.size();
    if (me) world.send(std::vector<double>(3), peer);
    std::vector<double> data(2);
    if (world.rank() == peer) world.recv(data, who);
    world.barrier();
  } else if (what == "heap") {
    comm::SymmetricSegments<double> segments(world, std::size_t{1} << 40);
  } else if (what == "unequal") {
    comm::SymmetricSegments<double> segments(world, me ? 10 : 20);
  } else if (what == "silent") {
    comm::SymmetricSegments<double> segments(world, 1);
    if (me) std::this_thread::sleep_for(std::chrono::seconds(4));
    segments.signal(world.size() - 1 - world.rank(), 1);
    segments.wait(who, 1);
  } else {
    fail(ErrorCode::invalid_argument, "what is " + what);
  }
  return 0;
}

}  // namespace

int main(int, char** argv) {
  try {
    return comm::run({.transport = argv[1], .threads = std::atoi(argv[2])},
                     [&](comm::Communicator& world) { return body(world, argv[3], std::atoi(argv[4])); });
  } catch (const std::exception& error) {
    fmt::print(stderr, "failing: {}\n", error.what());
    return 3;
  }
}
