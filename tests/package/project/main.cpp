// SPDX-License-Identifier: Apache-2.0
// A user's program: sums the ranks' numbers, on threads of this process and in the job it is part of.
#include <dlfcn.h>

#include <cstdio>

#include "shoal/base/error.h"
#include "shoal/comm/communicator.h"
#include "shoal/comm/job.h"

namespace {

void sum_ranks(shoal::comm::Communicator& world) {
  const int size = world.size();
  const int sum = world.all_reduce(world.rank() + 1, shoal::comm::Reduction::sum);
  if (sum != size * (size + 1) / 2) shoal::fail(shoal::ErrorCode::numeric, "wrong sum");
}

}  // namespace

int main() {
  // What linking to shoal::comm is to bring about, as OpenSHMEM transports need it.
  if (!dlsym(RTLD_DEFAULT, "_end")) {
    std::puts("this program does not export _end");
    return 1;
  }
  shoal::comm::run_threads(3, sum_ranks);
  return shoal::comm::run({}, [](shoal::comm::Communicator& world) {
    sum_ranks(world);
    if (world.rank() == 0) std::printf("right on %d PE(s)\n", world.size());
    return 0;
  });
}
