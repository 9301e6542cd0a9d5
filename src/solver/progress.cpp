// SPDX-License-Identifier: Apache-2.0
// The line of progress.
#include <unistd.h>

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "solver/monitor.h"

namespace shoal::solver {

Progress::Progress(std::string method, int max_iterations, int every)
    : method_(std::move(method)),
      max_iterations_(max_iterations),
      every_(every),
      terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::begin() {
  ended_ = false;
  if (every_ > 0) start_ = shown_ = Clock::now();
}

std::string Progress::line(int iteration, double residual_norm) const {
  const double elapsed_s = std::chrono::duration<double>(Clock::now() - start_).count();
  const double left_s = elapsed_s / iteration * (max_iterations_ - iteration);
  return fmt::format("{} {:>{}}/{}  residual {:.3e}  at most {:.1f} s left", method_, iteration,
                     fmt::formatted_size("{}", max_iterations_), max_iterations_, residual_norm, left_s);
}

void Progress::show(int iteration, double residual_norm) {
  if (every_ == 0) return;
  if (terminal_) {
    // As often as an eye can follow.
    if (Clock::now() - shown_ < std::chrono::milliseconds(100)) return;
    shown_ = Clock::now();
    fmt::print(stderr, "\r{}\033[K", line(iteration, residual_norm));
  } else if (iteration % every_ == 0) {
    fmt::print(stderr, "{}\n", line(iteration, residual_norm));
  }
}

void Progress::end(int iteration, double residual_norm, const char* why) {
  if (every_ == 0 || std::exchange(ended_, true)) return;
  fmt::print(stderr, "{}{} {} iterations  residual {:.3e}  {}{}\n", terminal_ ? "\r" : "", method_, iteration,
             residual_norm, why, terminal_ ? "\033[K" : "");
}

}  // namespace shoal::solver
