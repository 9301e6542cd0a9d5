// SPDX-License-Identifier: Apache-2.0
// How everything in comm waits: spin for a moment, yield, then sleep longer and longer; always with a
// deadline. More ranks than cores is normal, so spinning is kept to some tens of pauses: a waiting
// rank gives its core to the one it waits for.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "shoal/comm/job.h"  // default_deadline

namespace shoal::comm {

class Backoff {
 public:
  using Duration = std::chrono::steady_clock::duration;

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
      std::this_thread::sleep_for(sleep());
    }
  }

  /// How long it has been. Time in which this process did not run at all counts little: a job that was
  /// stopped as a whole, and goes on, has no silent ranks.
  Duration elapsed() {
    const auto now = std::chrono::steady_clock::now();
    if (last_ != std::chrono::steady_clock::time_point{})
      waited_ += std::min<Duration>(now - last_, longest_gap);
    last_ = now;
    return waited_;
  }

  /// True once in a while: when it is worth looking at the clock.
  bool time_to_look() const { return steps_ > spin_steps && (steps_ > yield_steps || steps_ % 64 == 0); }

 private:
  static constexpr int spin_steps = 16;
  static constexpr int yield_steps = 256;  // clock reads only after these
  static constexpr auto yield_time = std::chrono::milliseconds(5);
  static constexpr auto longest_gap = std::chrono::milliseconds(500);

  // A small part of the time that has passed, so that sleeping adds little to it. Up to a second it stays
  // short: data may be on its way, and moves only when this rank looks. Later it saves the processor.
  Duration sleep() const {
    using std::chrono::microseconds;
    if (waited_ < std::chrono::seconds(1))
      return std::clamp<Duration>(waited_ / 64, microseconds(50), microseconds(200));
    return std::min<Duration>(waited_ / 1000, microseconds(2000));
  }

  int steps_ = 0;
  Duration waited_{};
  std::chrono::steady_clock::time_point last_{};
};

/// Calls `done` until it is true, `progress` in between, and `look(elapsed)` now and then once it takes
/// long. Returns false when `deadline` has passed (milliseconds::max(): never).
template <class Done, class Progress, class Look>
bool wait_until(Done&& done, Progress&& progress, std::chrono::milliseconds deadline, Look&& look) {
  Backoff backoff;
  while (!done()) {
    progress();
    backoff.pause();
    if (!backoff.time_to_look()) continue;
    const auto elapsed = std::chrono::floor<std::chrono::milliseconds>(backoff.elapsed());
    look(elapsed);
    if (elapsed >= deadline) return done();
  }
  return true;
}

template <class Done, class Progress>
bool wait_until(Done&& done, Progress&& progress, std::chrono::milliseconds deadline) {
  return wait_until(done, progress, deadline, [](std::chrono::milliseconds) {});
}

}  // namespace shoal::comm
