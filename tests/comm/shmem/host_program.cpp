// SPDX-License-Identifier: Apache-2.0
// A program that has started OpenSHMEM itself and keeps it: Shoal joins and leaves ten times, and
// OpenSHMEM still works.
#include <shmem.h>

#include <cstdio>
#include <cstdlib>

#include "shoal/comm/job.h"

int main() {
  setenv("OMPI_MCA_osc", "^rdma", 0);  // as Shoal's own start does: the host's end would crash without
  shmem_init();
  const int size = shmem_n_pes();
  for (int round = 1; round <= 10; ++round) {
    const int code = shoal::comm::run({.transport = "shmem"}, [&](shoal::comm::Communicator& world) {
      return world.all_reduce(round, shoal::comm::Reduction::sum) == round * size ? 0 : 1;
    });
    if (code != 0) {
      std::fprintf(stderr, "round %d: code %d\n", round, code);
      return 1;
    }
  }
  long* word = static_cast<long*>(shmem_malloc(sizeof(long)));
  *word = -1;
  shmem_barrier_all();
  shmem_long_p(word, shmem_my_pe(), (shmem_my_pe() + 1) % size);
  shmem_barrier_all();
  const bool right = *word == (shmem_my_pe() + size - 1) % size;
  shmem_finalize();
  return right ? 0 : 1;
}
