// SPDX-License-Identifier: Apache-2.0
#include "comm/host_collectives.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "comm/host_task.h"
#include "comm/reduce.h"
#include "comm/wait_board.h"
#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

// The result of an operation in a group of one.
void run_alone(const Operation& op) {
  if (op.pattern == Pattern::barrier || op.pattern == Pattern::broadcast) return;
  if (op.pattern == Pattern::exclusive_scan)
    return fill_identity(op.recv.dtype, op.reduction, op.recv.data, op.recv.count);
  if (op.send.data != op.recv.data && op.recv.count > 0)
    std::memmove(op.recv.data, op.send.data, op.recv.bytes());
}

}  // namespace

// What has been started, with copies of what its caller may free.
class HostCollectives::Started final : public Exchange {
 public:
  Started(HostCollectives& host, const Operation& operation)
      : host_(host),
        counts_(operation.counts.begin(), operation.counts.end()),
        recv_counts_(operation.recv_counts.begin(), operation.recv_counts.end()),
        operation_(operation) {
    operation_.counts = counts_;
    operation_.recv_counts = recv_counts_;
    if (host_.size() == 1) {
      run_alone(operation_);
      done_ = true;
      return;
    }
    task_ = std::make_unique<HostTask>(host_, operation_);
    host_.started_.push_back(this);
  }
  ~Started() override {
    if (!done_) std::erase(host_.started_, this);
  }

  bool done() override {
    if (!done_) host_.advance_started();
    return done_;
  }
  // Those that the first in the queue waits for keep all waiting.
  std::vector<Rank> waiting_for() const override {
    std::vector<Rank> ranks;
    if (host_.started_.empty()) return ranks;
    for (const Rank member : host_.started_.front()->task_->silent())
      ranks.push_back(host_.world_rank_[static_cast<std::size_t>(member)]);
    return ranks;
  }
  bool advance() { return done_ = task_->advance(); }

 private:
  HostCollectives& host_;
  std::vector<std::int64_t> counts_, recv_counts_;
  Operation operation_;
  std::unique_ptr<HostTask> task_;
  bool done_ = false;
};

HostCollectives::HostCollectives(Transport& transport, const Group& group, HostArena::Lease lease,
                                 const Limits& limits)
    : transport_(transport),
      world_rank_(group.world_rank),
      rank_(group.rank),
      limits_(limits),
      lease_(std::move(lease)),
      members_(lease_.members()),
      half_bytes_(lease_.half_bytes()),
      chunk_bytes_(std::min(half_bytes_, lease_.crowded() ? limits.crowded_chunk_bytes : limits.chunk_bytes)),
      lent_bytes_(lease_.crowded() ? limits.crowded_lent_bytes : limits.lent_bytes),
      step_(lease_.first_step()),
      inputs_(world_rank_.size()) {}

HostCollectives::~HostCollectives() { lease_.set_last_step(step_); }

bool HostCollectives::fits(int members) {
  return static_cast<std::size_t>(members) <= tuning::chunk_bytes / tuning::cache_line;
}

std::size_t HostCollectives::area_bytes() const {
  return chunk_bytes_ / world_rank_.size() / tuning::cache_line * tuning::cache_line;
}

void HostCollectives::publish(std::uint16_t mark) {
  ++step_;
  store_word(members_[static_cast<std::size_t>(rank_)].words->step[step_ % 2].word,
             step_ << mark_bits | mark);
}

bool HostCollectives::reached(Rank& next, Rank end, std::uint64_t step, std::uint16_t mark) {
  if (mark == 0 && seen_ >= step) return true;
  for (; next < end; ++next) {
    if (next == rank_) continue;
    const std::uint64_t word = load_word(members_[static_cast<std::size_t>(next)].words->step[step % 2].word);
    if (word >> mark_bits < step) return false;
    if (mark != 0 && word >> mark_bits == step && (word & mark_mask) != mark) refuse(next, word, mark);
  }
  return true;
}

std::uint64_t HostCollectives::latest(Rank member) const {
  const HostSlot& slot = *members_[static_cast<std::size_t>(member)].words;
  return std::max(load_word(slot.step[0].word), load_word(slot.step[1].word)) >> mark_bits;
}

void HostCollectives::refuse(Rank member, std::uint64_t word, std::uint16_t mark) const {
  const auto pattern = [](std::uint64_t bits) {
    return to_string(static_cast<Pattern>((bits & mark_mask) / (std::uint64_t{1} << 12) - 1));
  };
  const Rank world_rank = world_rank_[static_cast<std::size_t>(member)];
  fail(ErrorCode::invalid_argument,
       fmt::format(
           "{} on rank {}: rank {} (PE {} on {}) is in {}: pattern, counts, type, reduction or root differ",
           pattern(mark), rank_, member, world_rank,
           transport_.world().host[static_cast<std::size_t>(world_rank)],
           pattern(word) == pattern(mark) ? "another one" : pattern(word)));
}

void HostCollectives::run(const Operation& operation) {
  if (size() == 1) return run_alone(operation);
  if (!started_.empty()) {
    Started last(*this, operation);
    return wait_or_fail(
        transport_.wait_board(), transport_.world(), to_string(operation.pattern),
        [&] { return last.done(); }, [this] { transport_.progress(); }, [&] { return last.waiting_for(); });
  }
  HostTask task(*this, operation);
  if (!task.advance()) wait_for(task, operation.pattern);
}

void HostCollectives::wait_for(HostTask& task, Pattern pattern) {
  // Whom a rank waits for may need its core.
  for (int i = 0; i < tuning::polls; ++i) {
    if (lease_.crowded()) std::this_thread::yield();
    if (task.advance()) return;
  }
  const auto who = [&] {
    std::vector<Rank> ranks;
    for (const Rank member : task.silent()) ranks.push_back(world_rank_[static_cast<std::size_t>(member)]);
    return ranks;
  };
  wait_or_fail(
      transport_.wait_board(), transport_.world(), to_string(pattern), [&] { return task.advance(); },
      [this] { transport_.progress(); }, who);
}

std::unique_ptr<Exchange> HostCollectives::start(const Operation& operation) {
  auto started = std::make_unique<Started>(*this, operation);
  started->done();
  return started;
}

void HostCollectives::advance_started() {
  while (!started_.empty() && started_.front()->advance()) started_.pop_front();
}

}  // namespace shoal::comm
