// SPDX-License-Identifier: Apache-2.0
// What the rivals' programs share: the arguments and the method of Shoal's benchmarks (../measure.h), over
// MPI.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report.h"

namespace shoal::bench {

/// Begins and ends MPI.
class Rival {
 public:
  /// `library`: its name, with a version, for the report. Ends the program on wrong arguments.
  Rival(int argc, char** argv, const std::string& library);
  ~Rival();
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool wanted(const std::string& name) const { return choice_.wanted(name); }
  /// Of the slowest rank, after one run that does not count.
  Quartiles time(const std::function<void()>& work) const;
  /// For every rank to call; rank 0 prints.
  void report(Line line) const;
  /// Ends the job if this is false on any rank.
  void require(bool right, const std::string& what) const;

 private:
  std::string library_;
  Choice choice_;
  int rank_ = 0, ranks_ = 1;
};

}  // namespace shoal::bench
