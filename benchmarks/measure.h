// SPDX-License-Identifier: Apache-2.0
// How Shoal's benchmarks measure. Each is a program
//
//   bench_NAME [--transport T] [--ranks N] [--seconds S] [CASE ...]
//
// that times the cases whose names contain one of CASE (all without), and prints a line of JSON for each
// (report.h). A launcher starts it for the transports mpi and shmem; --ranks counts the threads of the
// transport `threads`. Results are checked before or after they are timed; a wrong one ends the program.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "report.h"
#include "shoal/comm/communicator.h"

namespace shoal::bench {

class Bench {
 public:
  Bench(comm::Communicator& communicator, Choice choice);

  comm::Communicator& communicator;

  bool wanted(const std::string& name) const { return choice_.wanted(name); }
  /// Runs `work` once, then times it: all ranks begin together, and the slowest counts. `inner` calls are
  /// timed as one where one is too short.
  Quartiles time(const std::function<void()>& work, int inner = 1);

  /// Times and reports work that reads and writes `bytes`, all ranks together. Copying as many is timed
  /// before and after it, on arrays of the same size together, and reading as many. Of memcpy and a copy past
  /// the caches the faster counts.
  void memory_case(const std::string& name, double bytes, const std::function<void()>& work);
  /// Times and reports work of so many additions and multiplications. `blas_gflop_s`: what BLAS reaches on
  /// the ranks' shares, all together; 0: not measured.
  void compute_case(const std::string& name, double flops, double blas_gflop_s,
                    const std::function<void()>& work);
  void report(const std::string& name, const Quartiles& time,
              std::vector<std::pair<std::string, double>> more = {});

 private:
  struct Bandwidth {
    double copy_gb_s, read_gb_s;
  };
  Quartiles time(const std::function<void()>& work, int inner, double seconds);
  Bandwidth bandwidth(double bytes);
  void report(Line line, const Bandwidth& memory);

  Choice choice_;
};

/// Parses the arguments, starts the job with so much symmetric memory and runs `body` on every rank. For
/// main() to return.
int run(int argc, char** argv, std::size_t symmetric_bytes, const std::function<void(Bench&)>& body);

}  // namespace shoal::bench
