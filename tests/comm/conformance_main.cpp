// SPDX-License-Identifier: Apache-2.0
// conformance TRANSPORT [RANKS [CASE]]: runs the list on one transport. RANKS is for `threads`, and the
// expected number under a launcher.
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "comm/conformance.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"

using namespace shoal;

int main(int argc, char** argv) {
  const std::string transport = argc > 1 ? argv[1] : "threads";
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 1;
  const std::string only = argc > 3 ? argv[3] : "";
  const auto body = [&](comm::Communicator& world) {
    if (world.size() != ranks)
      fail(ErrorCode::invalid_argument, fmt::format("{} ranks instead of {}", world.size(), ranks));
    const comm::conformance::Tally mine = comm::conformance::run_cases(world, only, [] {});
    const std::int64_t comparisons = world.all_reduce(mine.comparisons, comm::Reduction::sum);
    if (world.rank() == 0)
      fmt::print("conformance: {} with {} ranks: {} cases, {} comparisons, all equal\n", transport,
                 world.size(), mine.cases, comparisons);
    return mine.cases > 0 ? 0 : 1;
  };
  try {
    return comm::run({.transport = transport, .threads = ranks, .symmetric_bytes = std::size_t{32} << 20},
                     body);
  } catch (const std::exception& error) {
    fmt::print(stderr, "conformance: {}\n", error.what());
    return 1;
  }
}
