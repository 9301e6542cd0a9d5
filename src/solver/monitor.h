// SPDX-License-Identifier: Apache-2.0
// What all iterative methods do beside their formulas: count, keep the history, ask the callback, report
// progress, and decide whether to go on. All ranks pass the same numbers, so they decide alike.
#pragma once

#include <chrono>
#include <string>

#include "shoal/comm/communicator.h"
#include "shoal/solver/result.h"

namespace shoal::solver {

/// A line about an iteration, on rank 0's error output.
class Progress {
 public:
  /// On a terminal one line is updated; else there is a line each `every` iterations; none if that is 0.
  Progress(std::string method, int max_iterations, int every);
  void begin();
  void show(int iteration, double residual_norm);
  void end(int iteration, double residual_norm, const char* why);

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(int iteration, double residual_norm) const;

  std::string method_;
  int max_iterations_, every_;
  bool terminal_;
  bool ended_ = false;
  Clock::time_point start_, shown_;
};

template <class T>
class Monitor {
 public:
  /// What is known after an iteration. `suspect` is where to look for elements that are not finite.
  struct Norms {
    double residual = 0;
    double cost = 0;
    bool converged = false;
    const DistributedArray<T>* suspect = nullptr;
    bool constrained = false;      // the cost may be infinite: a constraint is not met
    bool not_finite_here = false;  // this rank's own terms of the sums are not numbers
  };

  Monitor(const comm::Communicator& communicator, std::string method, int max_iterations,
          Callback<T> callback, int show_every);

  /// Before the first iteration. result.x is set.
  void begin(Result<T>& result, const Norms& norms);
  /// After an iteration.
  void end(Result<T>& result, const Norms& norms);
  /// In an iteration that cannot be done; x is that of the one before.
  void stop(Result<T>& result, Stop why);
  /// Collective: the same where a number is not finite; finds the first rank that has such an element in
  /// `suspect`, or that says so.
  void stop_non_finite(Result<T>& result, const DistributedArray<T>& suspect, bool not_finite_here = false);
  void finish(const Result<T>& result);
  /// Whether somebody looks at result.x after every iteration.
  bool watched() const { return static_cast<bool>(callback_); }

 private:
  bool record(Result<T>& result, const Norms& norms);

  int max_iterations_;
  Callback<T> callback_;
  Progress progress_;
};

}  // namespace shoal::solver
