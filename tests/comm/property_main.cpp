// SPDX-License-Identifier: Apache-2.0
// property TRANSPORT FIRST COUNT [RANKS]: the scripts of COUNT seeds from FIRST on, on the ranks that the
// launcher has started (RANKS is for `threads`). A failing one is printed; test_property makes it smaller.
#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "comm/property.h"
#include "shoal/comm/job.h"

using namespace shoal;

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: property TRANSPORT FIRST COUNT [RANKS]\n");
    return 2;
  }
  const std::uint64_t first = std::strtoull(argv[2], nullptr, 10),
                      count = std::strtoull(argv[3], nullptr, 10);
  const auto body = [&](comm::Communicator& world) {
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      const comm::property::Script script = comm::property::draw(seed, world.size(), world.size());
      try {
        comm::property::run(world, script);
      } catch (const std::exception& error) {
        throw std::runtime_error(fmt::format("{}\n{}", error.what(), comm::property::print(script)));
      }
    }
    if (world.rank() == 0) fmt::print("property: {} scripts with {} ranks, all right\n", count, world.size());
    return 0;
  };
  try {
    return comm::run({.transport = argv[1], .threads = argc > 4 ? std::atoi(argv[4]) : 1}, body);
  } catch (const std::exception& error) {
    fmt::print(stderr, "property: {}\n", error.what());
    return 1;
  }
}
