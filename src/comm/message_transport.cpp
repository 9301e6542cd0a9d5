// SPDX-License-Identifier: Apache-2.0
#include "comm/message_transport.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/wait.h"
#include "shoal/base/error.h"

namespace shoal::comm {

// A schedule that is under way; known to its transport from the first step to the last.
class MessageTransport::Running final : public Pending {
 public:
  Running(MessageTransport& transport, Group group, Pattern pattern, Schedule schedule)
      : transport_(transport), group_(std::move(group)), pattern_(pattern), schedule_(std::move(schedule)) {
    transport_.active_.push_back(this);
    place_ = std::prev(transport_.active_.end());
  }
  ~Running() override { leave(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  bool test() override {
    if (!done_) transport_.progress();
    return done_;
  }

  void wait() override {
    const auto done = [this] { return done_; };
    if (wait_until(
            done, [this] { transport_.progress(); }, default_deadline()))
      return;
    fail(ErrorCode::timeout,
         fmt::format("{} on rank {}: {} silent for {} s", to_string(pattern_), group_.rank,
                     exchange_ ? exchange_->waiting_for() + " has been" : "somebody has been",
                     default_deadline().count() / 1000));
  }

  /// Goes as far as it can.
  void step() {
    while (!done_) {
      if (!exchange_) {
        if (next_ == schedule_.rounds.size()) {
          done_ = true;
          leave();
          return;
        }
        const Round& round = schedule_.rounds[next_];
        exchange_ = transport_.messenger().start(group_, schedule_.tag, round.sends, round.receives);
      }
      if (!exchange_->done()) return;
      exchange_.reset();
      if (const auto& then = schedule_.rounds[next_].then) then();
      ++next_;
    }
  }

 private:
  void leave() {
    if (place_ != transport_.active_.end()) transport_.active_.erase(place_);
    place_ = transport_.active_.end();
  }

  MessageTransport& transport_;
  Group group_;
  Pattern pattern_;
  Schedule schedule_;
  std::list<Running*>::iterator place_;
  std::size_t next_ = 0;  // round
  std::unique_ptr<Exchange> exchange_;
  bool done_ = false;
};

namespace {

// Collectives of a group take the tags in turn, in the order in which all members start them.
int take_tag(std::map<std::uint64_t, int>& next, std::uint64_t context) {
  int& number = next[context];
  const int tag = -1 - number;
  number = (number + 1) % collective_tags;
  return tag;
}

}  // namespace

std::unique_ptr<Pending> MessageTransport::start(const Group& group, const Operation& operation) {
  Schedule schedule = make_schedule(group, operation);
  if (schedule.collective) schedule.tag = take_tag(next_tag_, group.context);
  auto running = std::make_unique<Running>(*this, group, operation.pattern, std::move(schedule));
  running->step();
  return running;
}

void MessageTransport::submit(const Group& group, const Operation& operation) {
  start(group, operation)->wait();
}

void MessageTransport::progress() {
  poll();
  // A step may end a schedule and take it off the list.
  for (auto it = active_.begin(); it != active_.end();) (*it++)->step();
}

}  // namespace shoal::comm
