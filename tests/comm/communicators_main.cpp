// SPDX-License-Identifier: Apache-2.0
// many_communicators TRANSPORT NUMBER: makes and drops so many. Fails if that takes memory for good, or
// whatever else a library or the system has few of: contexts, files, symmetric memory.
#include <fmt/format.h>

#include <cstdlib>

#include "comm/many_communicators.h"
#include "shoal/comm/job.h"

using namespace shoal;

int main(int, char** argv) {
  const int number = std::atoi(argv[2]);
  const auto body = [&](comm::Communicator& world) {
    const std::int64_t growth =
        world.all_reduce(comm::growth_by_communicators(world, number), comm::Reduction::max);
    if (world.rank() == 0) fmt::print("{} communicators, {} bytes more\n", number, growth);
    return growth < (std::int64_t{4} << 20) ? 0 : 1;
  };
  try {
    return comm::run({.transport = argv[1], .symmetric_bytes = std::size_t{1} << 20}, body);
  } catch (const std::exception& error) {
    fmt::print(stderr, "many_communicators: {}\n", error.what());
    return 1;
  }
}
