// SPDX-License-Identifier: Apache-2.0
// How everything in comm waits: spin for a moment, yield, then sleep longer and longer; always with a
// deadline. More ranks than cores is normal, so spinning is kept to some tens of pauses: a waiting
// rank gives its core to the one it waits for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "shoal/comm/job.h"  // default_deadline

namespace shoal::comm {

class Backoff {
 public:
  /// `longest_sleep`: short where somebody is at work on what is waited for, long for a PE that is idle.
  explicit Backoff(std::chrono::microseconds longest_sleep) : longest_sleep_(longest_sleep) {}

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
      sleep_ = std::min(sleep_ * 2, longest_sleep_);
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
  std::chrono::microseconds longest_sleep_;
  int steps_ = 0;
  std::chrono::microseconds sleep_{50};
  std::chrono::steady_clock::time_point start_{};
};

/// Calls `done` until it is true, `progress` in between. Returns false when `deadline` has passed.
template <class Done, class Progress>
bool wait_until(Done&& done, Progress&& progress, std::chrono::milliseconds deadline) {
  const bool for_ever = deadline == std::chrono::milliseconds::max();
  Backoff backoff(std::chrono::microseconds(for_ever ? 2000 : 200));
  while (!done()) {
    progress();
    backoff.pause();
    if (!for_ever && backoff.time_to_look() && backoff.elapsed() > deadline) return done();
  }
  return true;
}

}  // namespace shoal::comm
