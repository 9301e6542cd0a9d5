// SPDX-License-Identifier: Apache-2.0
// Who waits for whom, so that a silent rank is named itself and not only the last of those that wait for it
// in turn.
//
// Every rank has a word for each other rank in symmetric memory. A rank whose wait becomes long writes
// "I wait for P" into its word on all ranks, and again and again while it waits (a beat). So a rank that
// beats is alive and not to blame; one that does not beat computes, is stopped, or is cut off. Whoever
// reaches its deadline follows the words from rank to rank until it comes to one that does not beat.
// A wait that ends soon costs nothing, and no word has to be taken back: beats that end are enough.
//
// What it cannot tell: why a rank is silent, and of two ranks that wait for each other which one is wrong.
// A rank inside a call of the library that does not return (its start, its end) looks silent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/wait.h"
#include "shoal/base/error.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

class WaitBoard {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// Bytes of symmetric memory on each rank of a world.
  static std::size_t footprint(int size);
  /// `memory` is over the whole world, zeroed.
  WaitBoard(std::unique_ptr<SymmetricMemory> memory, const World& world, Milliseconds deadline);

  /// Time between beats; the first comes when a wait has lasted that long.
  Milliseconds interval() const { return interval_; }
  /// Tells everybody that this rank waits for `peers` (ranks of the world, not none).
  void beat(std::span<const Rank> peers);
  /// From now on beats say that this rank has done its part of the job, and waits for its end.
  void leave() { left_ = true; }
  /// Whether it is for this rank to speak: none below it waits for the same silent rank.
  bool speaks(std::span<const Rank> peers);
  /// "PE 1 (h2) has been silent for 3 s (PE 0 waits for PE 2, PE 2 for PE 1)".
  std::string explain(std::span<const Rank> peers, Milliseconds waited);
  /// Prints that this rank has waited long for a silent one; once for each that is silent, by one rank.
  void warn(std::span<const Rank> peers, Milliseconds waited);

 private:
  struct Seen {
    std::uint64_t word = 0;
    std::chrono::steady_clock::time_point at{};
  };
  void look();
  bool beats(Rank rank) const;
  bool left(Rank rank) const;
  Rank suspect(std::span<const Rank> peers) const;
  std::vector<Rank> chain(std::span<const Rank> peers) const;

  std::unique_ptr<SymmetricMemory> memory_;
  const World& world_;
  Milliseconds interval_;
  std::uint64_t count_ = 0;  // of beats
  bool left_ = false;
  std::vector<Seen> seen_;  // of each rank: its latest word, and when it came
  std::vector<bool> warned_;
};

/// Text for a wait that was in vain; `board` may be null.
std::string silence(WaitBoard* board, const World& world, std::span<const Rank> peers,
                    std::chrono::milliseconds waited);

/// What a wait for peers does when it takes long.
class LongWait {
 public:
  LongWait(WaitBoard* board, std::chrono::milliseconds deadline);
  /// Whether there is something to do after waiting so long.
  bool due(std::chrono::milliseconds elapsed) const { return board_ && elapsed >= next_; }
  void act(std::chrono::milliseconds elapsed, const std::vector<Rank>& peers);

 private:
  WaitBoard* board_;
  std::chrono::milliseconds deadline_;
  std::chrono::milliseconds next_;
  bool warned_ = false;
};

/// Until `done`. `who` tells the ranks of the world that are waited for; it is asked only when it takes long.
/// Returns false when `deadline` has passed (milliseconds::max(): never).
template <class Done, class Progress, class Who>
bool wait_for_peers(WaitBoard* board, Done&& done, Progress&& progress, std::chrono::milliseconds deadline,
                    Who&& who) {
  LongWait watch(board, deadline);
  return wait_until(done, progress, deadline, [&](std::chrono::milliseconds elapsed) {
    if (watch.due(elapsed)) watch.act(elapsed, who());
  });
}

/// The same with the deadline of the job; past it throws timeout, "WHAT: PE 1 (h2) has been silent for 3 s".
/// Of several ranks that wait in vain one speaks; the others give it three seconds to end the job.
template <class Done, class Progress, class Who>
void wait_or_fail(WaitBoard* board, const World& world, std::string_view what, Done&& done,
                  Progress&& progress, Who&& who) {
  const std::chrono::milliseconds deadline = default_deadline();
  if (wait_for_peers(board, done, progress, deadline, who)) return;
  const std::vector<Rank> peers = who();
  const std::string text = silence(board, world, peers, deadline);
  if (board && !board->speaks(peers) && wait_until(done, progress, std::chrono::seconds(3))) return;
  fail(ErrorCode::timeout, what.empty() ? text : std::string(what) + ": " + text);
}

}  // namespace shoal::comm
