// SPDX-License-Identifier: Apache-2.0
#include "timing.h"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <mpi.h>
#include <CLI/CLI.hpp>

namespace shoal::bench {

Rival::Rival(int argc, char** argv, const std::string& library) : library_(library) {
  CLI::App app("Times cases and prints a line of JSON for each.");
  app.add_option("--seconds", choice_.seconds, "for each case")->capture_default_str();
  app.add_option("cases", choice_.cases, "cases: parts of their names (default: all)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
}

Rival::~Rival() { MPI_Finalize(); }

Quartiles Rival::time(const std::function<void()>& work) const {
  std::vector<double> ms;
  work();
  while (!enough(ms, choice_.seconds)) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    work();
    double slowest = (MPI_Wtime() - start) * 1e3;
    MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    ms.push_back(slowest);
  }
  return quartiles(std::move(ms));
}

void Rival::report(Line line) const {
  line.ranks = ranks_;
  line.transport = "mpi";
  line.library = library_;
  if (rank_ == 0) print(line);
}

void Rival::require(bool right, const std::string& what) const {
  if (right) return;
  fmt::print(stderr, "rank {}: {} is wrong\n", rank_, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace shoal::bench
