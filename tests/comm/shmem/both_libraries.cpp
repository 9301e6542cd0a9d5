// SPDX-License-Identifier: Apache-2.0
// both_libraries TRANSPORT RANKS: a program that has started MPI and OpenSHMEM itself, and goes on using both
// while Shoal runs all conformance cases over one of them.
#include <mpi.h>
#include <shmem.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "comm/conformance.h"
#include "shoal/comm/job.h"

namespace {

// The program's own messages: around the ring by both libraries, and a sum.
void own_traffic(long* word, int round) {
  const int me = shmem_my_pe(), size = shmem_n_pes();
  const int next = (me + 1) % size, previous = (me + size - 1) % size;
  int sent = 1000 * round + me, received = -1, sum = 0;
  MPI_Sendrecv(&sent, 1, MPI_INT, next, 0, &received, 1, MPI_INT, previous, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Allreduce(&sent, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  shmem_long_p(word, sent, next);
  shmem_barrier_all();
  const long put = *word;
  shmem_barrier_all();
  const int expected = 1000 * round + previous;
  if (received != expected || put != expected || sum != size * 1000 * round + size * (size - 1) / 2)
    throw std::runtime_error("the program's own messages went wrong in round " + std::to_string(round));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  setenv("OMPI_MCA_osc", "^rdma", 0);  // as Shoal's own start does: the end of OpenSHMEM would crash without
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  shmem_init();
  auto* word = static_cast<long*>(shmem_malloc(sizeof(long)));
  int round = 0;
  const int code = shoal::comm::run({.transport = argv[1], .symmetric_bytes = std::size_t{32} << 20},
                                    [&](shoal::comm::Communicator& world) {
                                      if (world.size() != std::atoi(argv[2])) return 1;
                                      const auto mine = shoal::comm::conformance::run_cases(
                                          world, "", [&] { own_traffic(word, ++round); });
                                      return mine.cases > 0 ? 0 : 1;
                                    });
  own_traffic(word, ++round);
  shmem_free(word);
  shmem_finalize();  // ends MPI too, in the library that is tested here
  if (code == 0) std::printf("both libraries: %s, %d rounds of the program's own\n", argv[1], round);
  return code;
}
