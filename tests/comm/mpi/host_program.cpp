// SPDX-License-Identifier: Apache-2.0
// A program that has started MPI itself and keeps it: Shoal joins and leaves ten times, and MPI still works.
#include <mpi.h>

#include <cstdio>

#include "shoal/comm/job.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int round = 1; round <= 10; ++round) {
    const int code = shoal::comm::run({.transport = "mpi"}, [&](shoal::comm::Communicator& world) {
      return world.all_reduce(round, shoal::comm::Reduction::sum) == round * size ? 0 : 1;
    });
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (code != 0 || finalized) {
      std::fprintf(stderr, "round %d: code %d, finalized %d\n", round, code, finalized);
      return 1;
    }
  }
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum == size ? 0 : 1;
}
