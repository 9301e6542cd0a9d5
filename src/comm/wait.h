// SPDX-License-Identifier: Apache-2.0
// How everything in comm waits: spin for a moment, yield, then sleep longer and longer; always with a
// deadline. More ranks than cores is normal, so spinning is kept to some tens of pauses: a waiting
// rank gives its core to the one it waits for.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "shoal/base/error.h"

namespace shoal::comm {

class Backoff {
 public:
  /// One step of waiting: a pause, a yield or a sleep, according to how long it has been.
  void pause() {
    ++steps_;
    if (steps_ <= spin_steps) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (steps_ <= yield_steps || elapsed() < yield_time) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(sleep_);
      sleep_ = std::min(sleep_ * 2, longest_sleep);
    }
  }

  std::chrono::steady_clock::duration elapsed() {
    const auto now = std::chrono::steady_clock::now();
    if (start_ == std::chrono::steady_clock::time_point{}) start_ = now;
    return now - start_;
  }

  /// True once in a while: when it is worth looking at the clock.
  bool time_to_look() const { return steps_ > spin_steps && (steps_ > yield_steps || steps_ % 64 == 0); }

 private:
  static constexpr int spin_steps = 16;
  static constexpr int yield_steps = 256;  // clock reads only after these
  static constexpr auto yield_time = std::chrono::milliseconds(5);
  static constexpr auto longest_sleep = std::chrono::microseconds(2000);
  int steps_ = 0;
  std::chrono::microseconds sleep_{50};
  std::chrono::steady_clock::time_point start_{};
};

std::chrono::milliseconds default_deadline();

/// Calls `done` until it is true, `progress` in between. Returns false when `deadline` has passed.
template <class Done, class Progress>
bool wait_until(Done&& done, Progress&& progress, std::chrono::milliseconds deadline) {
  Backoff backoff;
  while (!done()) {
    progress();
    backoff.pause();
    if (deadline != std::chrono::milliseconds::max() && backoff.time_to_look() &&
        backoff.elapsed() > deadline)
      return done();
  }
  return true;
}

}  // namespace shoal::comm
