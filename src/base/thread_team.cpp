// SPDX-License-Identifier: Apache-2.0
// Fork-join over an epoch counter. run() publishes the function, advances the epoch, does its own part
// and waits until the count of members still at work is zero; a member waits for the next epoch.
//
// Every wait has three phases. Spinning catches the next run() of a busy decode. Yielding costs little
// when a core is free and hands the core over when there are more threads than cores; it is where a
// team waits through the serial parts between two kernels. Sleeping frees the core of an idle team.
#include "shoal/base/thread_team.h"

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "shoal/base/error.h"

namespace shoal {
namespace {

// A pause takes some 35 ns on recent x86 cores and a cache line 44 to 220 ns to cross: 20 pauses cover the
// hand-over between running members, and waste less than a microsecond when the other side has no core.
constexpr int spin_pauses = 20;
// A yield with nothing else to run returns within 0.3 us: about 150 us, longer than the serial parts of a
// decode, far shorter than a time slice.
constexpr int yields_before_sleep = 500;

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The sleeping phase, shared by all waits of a team. The waker changes the watched value first and reads
// `sleepers` second; a sleeper does it the other way round (all sequentially consistent), so one of the
// two sees the other and no wake-up is lost.
class Dormitory {
 public:
  template <class Ready>
  void wait(Ready ready) {
    for (int i = 0; i < spin_pauses; ++i) {
      if (ready()) return;
      pause_briefly();
    }
    for (int i = 0; i < yields_before_sleep; ++i) {
      if (ready()) return;
      sched_yield();
    }
    sleepers_.fetch_add(1);
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, ready);
    }
    sleepers_.fetch_sub(1);
  }

  void wake_all() {
    if (sleepers_.load() == 0) return;
    { const std::lock_guard lock(mutex_); }  // a sleeper that has tested `ready` is inside wait() by now
    wake_.notify_all();
  }

 private:
  std::atomic<int> sleepers_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace

struct ThreadTeam::State {
  // Each on its own cache line: members poll `epoch`, the caller polls `working`.
  alignas(64) std::atomic<std::uint32_t> epoch = 0;
  alignas(64) std::atomic<int> working = 0;
  alignas(64) const std::function<void(int)>* body = nullptr;  // null at an epoch's start: members end
  Dormitory members, caller;
  std::vector<std::thread> threads;

  void start_epoch(const std::function<void(int)>* next) {
    body = next;
    working.store(static_cast<int>(threads.size()), std::memory_order_relaxed);
    epoch.fetch_add(1);  // publishes the two above
    members.wake_all();
  }

  void serve(int member) {
    for (std::uint32_t seen = 0;; ++seen) {
      members.wait([&] { return epoch.load() != seen; });
      if (body == nullptr) return;
      (*body)(member);
      if (working.fetch_sub(1) == 1) caller.wake_all();
    }
  }

  void end_members() {
    start_epoch(nullptr);
    for (std::thread& thread : threads) thread.join();
  }
};

ThreadTeam::ThreadTeam(int threads) {
  if (threads < 1)
    fail(ErrorCode::invalid_argument,
         "a thread team needs at least 1 thread; got " + std::to_string(threads));
  state_ = std::make_unique<State>();
  State& state = *state_;
  state.threads.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int member = 1; member < threads; ++member)
      state.threads.emplace_back([&state, member] { state.serve(member); });
  } catch (const std::system_error& error) {
    state.end_members();
    fail(ErrorCode::io, "cannot start " + std::to_string(threads) + " threads (" + error.what() +
                            "); ask for fewer threads");
  }
}

ThreadTeam::~ThreadTeam() { state_->end_members(); }

int ThreadTeam::size() const { return static_cast<int>(state_->threads.size()) + 1; }

void ThreadTeam::run(const std::function<void(int member)>& body) {
  State& state = *state_;
  if (state.threads.empty()) return body(0);
  state.start_epoch(&body);
  body(0);
  state.caller.wait([&] { return state.working.load() == 0; });
}

}  // namespace shoal
