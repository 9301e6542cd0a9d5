// SPDX-License-Identifier: Apache-2.0
#include "comm/wait_board.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "comm/direct_memory.h"

namespace shoal::comm {
namespace {

// A word: the number of the beat, and the rank that is waited for. Each word has a cache line, so that
// beats of different ranks never meet.
constexpr std::size_t line = 64;
constexpr int rank_bits = 24;
constexpr std::uint64_t rank_mask = (std::uint64_t{1} << rank_bits) - 1;
constexpr Rank nobody = static_cast<Rank>(rank_mask);  // of a rank that has left

Rank waits_for(std::uint64_t word) { return static_cast<Rank>(word & rank_mask); }
std::size_t offset_of(Rank rank) { return static_cast<std::size_t>(rank) * line; }

std::string name_of(const World& world, Rank rank) {
  return fmt::format("PE {} ({})", rank, world.host[static_cast<std::size_t>(rank)]);
}

std::string seconds(std::chrono::milliseconds time) {
  return fmt::format("{:.3g} s", static_cast<double>(time.count()) / 1000.0);
}

}  // namespace

std::size_t WaitBoard::footprint(int size) { return static_cast<std::size_t>(size) * line; }

// Eight beats within the deadline tell a rank that is alive; a rank that waits for days need not beat more
// often than every ten seconds.
WaitBoard::WaitBoard(std::unique_ptr<SymmetricMemory> memory, const World& world, Milliseconds deadline)
    : memory_(std::move(memory)),
      world_(world),
      interval_(std::clamp(deadline / 8, Milliseconds(20), Milliseconds(10'000))),
      seen_(static_cast<std::size_t>(world.size)),
      warned_(static_cast<std::size_t>(world.size)) {}

void WaitBoard::beat(std::span<const Rank> peers) {
  look();
  const Rank awaited = left_ ? nobody : suspect(peers);
  const std::uint64_t word = ++count_ << rank_bits | static_cast<std::uint64_t>(awaited);
  const std::size_t offset = offset_of(world_.rank);
  for (Rank rank = 0; rank < world_.size; ++rank) {
    if (std::byte* memory = memory_->direct(rank))
      store_signal(memory, offset, word);
    else
      memory_->put(rank, offset, &word, sizeof word);
  }
}

void WaitBoard::look() {
  const auto now = std::chrono::steady_clock::now();
  for (Rank rank = 0; rank < world_.size; ++rank) {
    auto* word = reinterpret_cast<std::uint64_t*>(memory_->local() + offset_of(rank));
    const std::uint64_t value = std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
    Seen& seen = seen_[static_cast<std::size_t>(rank)];
    if (value != seen.word) seen = {value, now};
  }
}

// A beat may come late where ranks share a core.
bool WaitBoard::beats(Rank rank) const {
  const Seen& seen = seen_[static_cast<std::size_t>(rank)];
  return seen.word != 0 && std::chrono::steady_clock::now() - seen.at < interval_ * 7 / 2;
}

bool WaitBoard::left(Rank rank) const {
  return waits_for(seen_[static_cast<std::size_t>(rank)].word) == nobody;
}

// Of several peers the one that does not beat.
Rank WaitBoard::suspect(std::span<const Rank> peers) const {
  const auto found = std::find_if(peers.begin(), peers.end(), [&](Rank peer) { return !beats(peer); });
  return found == peers.end() ? peers.front() : *found;
}

// This rank, who it waits for, whom that one waits for, and so on: to one that does not beat, that has
// left, or that has been met before.
std::vector<Rank> WaitBoard::chain(std::span<const Rank> peers) const {
  std::vector<Rank> ranks = {world_.rank};
  Rank next = suspect(peers);
  for (;;) {
    const bool again = std::find(ranks.begin(), ranks.end(), next) != ranks.end();
    ranks.push_back(next);
    if (again || !beats(next) || left(next)) return ranks;
    next = waits_for(seen_[static_cast<std::size_t>(next)].word);
  }
}

bool WaitBoard::speaks(std::span<const Rank> peers) {
  look();
  const Rank silent = chain(peers).back();
  for (Rank rank = 0; rank < world_.rank; ++rank)
    if (rank != silent && beats(rank)) return false;
  return true;
}

std::string WaitBoard::explain(std::span<const Rank> peers, Milliseconds waited) {
  look();
  const std::vector<Rank> ranks = chain(peers);
  std::string path = fmt::format("PE {} waits for PE {}", ranks[0], ranks[1]);
  for (std::size_t i = 1; i + 1 < ranks.size(); ++i)
    path += fmt::format(", PE {} for PE {}", ranks[i], ranks[i + 1]);
  const bool cycle = std::count(ranks.begin(), ranks.end(), ranks.back()) > 1;
  if (cycle)
    return fmt::format("nothing has come from {} for {}, and nobody is silent: {}", name_of(world_, ranks[1]),
                       seconds(waited), path);
  const std::string text =
      left(ranks.back())
          ? fmt::format("{} has ended its part of the job, and nothing has come from it for {}",
                        name_of(world_, ranks.back()), seconds(waited))
          : fmt::format("{} has been silent for {}", name_of(world_, ranks.back()), seconds(waited));
  return ranks.size() == 2 ? text : fmt::format("{} ({})", text, path);
}

void WaitBoard::warn(std::span<const Rank> peers, Milliseconds waited) {
  look();
  const std::vector<Rank> ranks = chain(peers);
  const Rank silent = ranks.back();
  // Who waits for somebody that waits as well leaves it to that one.
  if (ranks.size() > 2 || beats(silent) || warned_[static_cast<std::size_t>(silent)]) return;
  for (Rank rank = 0; rank < world_.rank; ++rank)
    if (beats(rank) && waits_for(seen_[static_cast<std::size_t>(rank)].word) == silent) return;
  warned_[static_cast<std::size_t>(silent)] = true;
  const std::string text = fmt::format("shoal: {} has waited {} for {}\n", name_of(world_, world_.rank),
                                       seconds(waited), name_of(world_, silent));
  std::fputs(text.c_str(), stderr);
}

std::string silence(WaitBoard* board, const World& world, std::span<const Rank> peers,
                    std::chrono::milliseconds waited) {
  if (peers.empty()) return fmt::format("no progress for {}", seconds(waited));
  if (board) return board->explain(peers, waited);
  return fmt::format("{} has been silent for {}", name_of(world, peers.front()), seconds(waited));
}

LongWait::LongWait(WaitBoard* board, std::chrono::milliseconds deadline)
    : board_(board), deadline_(deadline), next_(board ? board->interval() : deadline) {}

void LongWait::act(std::chrono::milliseconds elapsed, const std::vector<Rank>& peers) {
  next_ = elapsed + board_->interval();
  if (peers.empty()) return;
  board_->beat(peers);
  // After a third of the deadline the others' beats are here. Who may wait for ever complains of nobody.
  if (warned_ || deadline_ != default_deadline() || elapsed < deadline_ / 3) return;
  warned_ = true;
  board_->warn(peers, elapsed);
}

}  // namespace shoal::comm
