// SPDX-License-Identifier: Apache-2.0
// A team of threads that runs one function at a time on all its members: the fork-join of a compute
// kernel, cheap enough to use several hundred times a token.
#pragma once

#include <functional>
#include <memory>

namespace shoal {

class ThreadTeam {
 public:
  /// `threads` >= 1 members; the caller of run() is one of them, so 1 starts no thread.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const;

  /// Runs body(member) for member = 0..size()-1 at the same time and returns when all have ended.
  /// `body` must not throw. One caller at a time. Waiting members spin briefly, then yield, then sleep.
  void run(const std::function<void(int member)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shoal
