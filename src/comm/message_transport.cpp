// SPDX-License-Identifier: Apache-2.0
#include "comm/message_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "comm/group_state.h"
#include "comm/host_collectives.h"
#include "comm/mailbox.h"
#include "comm/schedule_round.h"
#include "comm/tuning.h"
#include "comm/wait_board.h"
#include "shoal/base/error.h"

namespace shoal::comm {

// A schedule that is under way; known to its transport from the first step to the last.
class MessageTransport::Running final : public Pending {
 public:
  Running(MessageTransport& transport, const Group& group, Pattern pattern,
          std::shared_ptr<const Schedule> schedule, int tag)
      : transport_(transport), group_(group), pattern_(pattern), schedule_(std::move(schedule)), tag_(tag) {
    if (schedule_->in_turn) group_.state->turns.push_back(this);
    transport_.active_.push_back(this);
  }
  /// What has been started elsewhere.
  Running(MessageTransport& transport, const Group& group, Pattern pattern,
          std::unique_ptr<Exchange> exchange)
      : Running(transport, group, pattern, one_round(), 0) {
    exchange_ = std::move(exchange);
    step();
  }
  ~Running() override { leave(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  bool test() override {
    if (!done_) transport_.progress();
    return done_;
  }

  void wait() override {
    // The exchange alone at first: a short one ends without a look at everything else.
    const int polls =
        group_.state && group_.state->hosts.count() > 1 ? tuning::polls_of_several_hosts : tuning::polls;
    for (int i = 0; i < tuning::patient_polls && !done_; ++i) {
      step();
      // Another rank of this host may need the processor; the library's own calls see to that themselves.
      if (i > polls && !done_ && !(exchange_ && exchange_->polls_library())) std::this_thread::yield();
    }
    if (done_) return;
    const auto who = [this] { return exchange_ ? exchange_->waiting_for() : std::vector<Rank>(); };
    wait_or_fail(
        transport_.wait_board(), transport_.world(), to_string(pattern_), [this] { return done_; },
        [this] { transport_.progress(); }, who);
  }

  /// Goes as far as it can.
  void step() {
    if (schedule_->in_turn && group_.state->turns.front() != this) return;
    while (!done_) {
      if (!exchange_) {
        if (next_ == schedule_->rounds.size()) {
          done_ = true;
          leave();
          return;
        }
        const Round& round = schedule_->rounds[next_];
        if (!round.is_local())
          exchange_ = start_round(transport_.messenger(), group_.state->host.get(), group_,
                                  group_.state->hosts, tag_, round);
      }
      if (exchange_ && !exchange_->done()) return;
      exchange_.reset();
      if (const auto& then = schedule_->rounds[next_].then) then();
      ++next_;
    }
  }

 private:
  static std::shared_ptr<const Schedule> one_round() {
    const auto schedule = std::make_shared<Schedule>();
    schedule->add();
    return schedule;
  }

  void leave() {
    std::erase(transport_.active_, this);
    if (schedule_->in_turn) std::erase(group_.state->turns, this);
  }

  MessageTransport& transport_;
  const Group& group_;  // its communicator is kept by whoever waits
  Pattern pattern_;
  std::shared_ptr<const Schedule> schedule_;
  int tag_;
  std::size_t next_ = 0;  // round
  std::unique_ptr<Exchange> exchange_;
  bool done_ = false;
};

// Messages through the mailbox, which need no schedule.
class MessageTransport::Passing final : public Pending {
 public:
  Passing(MessageTransport& transport, const Group& group, const Operation& operation)
      : transport_(transport),
        group_(group),
        pattern_(operation.pattern),
        messages_(*transport.mailbox_, group, operation) {}

  bool test() override {
    transport_.progress();
    return messages_.done();
  }
  void wait() override { transport_.pass(messages_, group_, pattern_); }

 private:
  MessageTransport& transport_;
  const Group& group_;  // its communicator is kept by whoever waits
  Pattern pattern_;
  Mailbox::Transfers messages_;
};

namespace {

// Where all members are on this host, the host's collectives are the group's.
HostCollectives* host_alone(const Group& group, Pattern pattern) {
  if (!group.state || !group.state->host || !is_collective(pattern)) return nullptr;
  return group.state->hosts.count() == 1 ? group.state->host.get() : nullptr;
}

}  // namespace

std::unique_ptr<Pending> MessageTransport::start(const Group& group, const Operation& operation) {
  if (HostCollectives* host = host_alone(group, operation.pattern))
    return std::make_unique<Running>(*this, group, operation.pattern, host->start(operation));
  if (passes(group, operation)) {
    if (operation.pattern == Pattern::exchange) copy_own_parts(group.rank, operation);
    return std::make_unique<Passing>(*this, group, operation);
  }
  auto running = std::make_unique<Running>(*this, group, operation.pattern, schedule_for(group, operation),
                                           tag_for(group, operation));
  running->step();
  return running;
}

std::shared_ptr<const Schedule> MessageTransport::schedule_for(const Group& group,
                                                               const Operation& operation) {
  if (!group.state) group.state = std::make_shared<GroupState>(each_apart(group));
  const bool may_keep = is_collective(operation.pattern);
  std::shared_ptr<const Schedule> schedule = may_keep ? group.state->kept.find(operation) : nullptr;
  if (schedule) return schedule;
  schedule = std::make_shared<Schedule>(make_schedule(group, group.state->hosts, operation, options_));
  if (may_keep) group.state->kept.keep(operation, schedule);
  return schedule;
}

// Collectives of a group take the tags in turn, in the order in which all members start them.
int MessageTransport::tag_for(const Group& group, const Operation& operation) {
  if (!is_collective(operation.pattern)) return operation.tag;
  int& number = next_tag_[group.context];
  const int tag = -1 - number;
  number = (number + 1) % collective_tags;
  return tag;
}

void MessageTransport::submit(const Group& group, const Operation& operation) {
  if (HostCollectives* host = host_alone(group, operation.pattern)) return host->run(operation);
  if (passes(group, operation)) {
    if (operation.pattern == Pattern::exchange) copy_own_parts(group.rank, operation);
    Mailbox::Transfers messages(*mailbox_, group, operation);
    return pass(messages, group, operation.pattern);
  }
  if (!is_collective(operation.pattern)) return pass_library_messages(group, operation);
  Running(*this, group, operation.pattern, schedule_for(group, operation), tag_for(group, operation)).wait();
}

void MessageTransport::pass_library_messages(const Group& group, const Operation& operation) {
  std::vector<OutgoingPart> sends;
  std::vector<IncomingPart> receives;
  if (operation.pattern == Pattern::send)
    sends = {{operation.peer, operation.send.data, operation.send.bytes()}};
  if (operation.pattern == Pattern::recv)
    receives = {{operation.peer, operation.recv.data, operation.recv.bytes()}};
  if (operation.pattern == Pattern::exchange) copy_own_parts(group.rank, operation);
  for (const Part& part : operation.sends)
    if (part.peer != group.rank) sends.push_back({part.peer, part.buffer.data, part.buffer.bytes()});
  for (const Part& part : operation.receives)
    if (part.peer != group.rank) receives.push_back({part.peer, part.buffer.data, part.buffer.bytes()});
  const auto exchange = messenger().start(group, operation.tag, sends, receives);
  for (int i = 0; i < tuning::patient_polls; ++i)
    if (exchange->done()) return;
  wait_or_fail(
      wait_board(), world(), to_string(operation.pattern), [&] { return exchange->done(); },
      [this] { progress(); }, [&] { return exchange->waiting_for(); });
}

// Whether all messages of an exchange, send or recv go through the mailbox.
bool MessageTransport::passes(const Group& group, const Operation& operation) const {
  if (!mailbox_ || is_collective(operation.pattern)) return false;
  const auto carried = [&](Rank rank) {
    return mailbox_->carries(group.world_rank[static_cast<std::size_t>(rank)]);
  };
  if (operation.pattern != Pattern::exchange) return carried(operation.peer);
  const auto all = [&](std::span<const Part> parts) {
    return std::ranges::all_of(
        parts, [&](const Part& part) { return part.peer == group.rank || carried(part.peer); });
  };
  return all(operation.sends) && all(operation.receives);
}

void MessageTransport::pass(Mailbox::Transfers& messages, const Group& group, Pattern pattern) {
  // Whom a rank waits for may need its core.
  const bool crowded = group.state && group.state->host && group.state->host->crowded();
  for (int i = 0; i < tuning::polls; ++i) {
    if (messages.done()) return;
    if (crowded) std::this_thread::yield();
  }
  wait_or_fail(
      wait_board(), world(), to_string(pattern), [&] { return messages.done(); }, [this] { progress(); },
      [&] { return messages.waiting_for(); });
}

void MessageTransport::use_mailbox(Mailbox* mailbox, bool threads) {
  mailbox_ = mailbox;
  peer_memory_ = std::make_unique<PeerMemory>(world(), mailbox->windows(), threads);
  mailbox->accept_lent(*peer_memory_);
}

// Among the ranks of this host: each tries to read from all others and to write to them; if
// all can, large data is lent.
void MessageTransport::share_ordinary_memory(HostCollectives& host) {
  std::int64_t all = peer_memory_ && peer_memory_->reaches_all() ? 1 : 0;
  host.run({.pattern = Pattern::all_reduce,
            .reduction = Reduction::min,
            .send = {&all, 1, DType::int64},
            .recv = {&all, 1, DType::int64}});
  lends_ = all != 0;
  if (lends_) mailbox_->lend();
}

void MessageTransport::use_host_memory(std::unique_ptr<SymmetricMemory> memory) {
  arena_ = std::make_unique<HostArena>(std::move(memory));
}

void MessageTransport::drop_host_memory() {
  mailbox_ = nullptr;
  lends_ = false;
  if (arena_) arena_->abandon();
}

// The members on a host tell each other what they offer; all of them must have room.
void MessageTransport::share_memory(const Group& group) {
  GroupState& state = *group.state;
  const Group part = host_part(group, state.hosts);
  const std::size_t size = part.world_rank.size();
  const auto make = [&](HostArena::Lease lease) {
    state.host = std::make_unique<HostCollectives>(*this, part, std::move(lease),
                                                   HostCollectives::Limits::from_environment());
    if (part.size() > 1 && group.context == 0) share_ordinary_memory(*state.host);
    if (lends_) state.host->lend(*peer_memory_);
  };
  if (size == 1) return make({});
  if (!arena_ || !HostCollectives::fits(part.size())) return;
  const HostArena::Offer mine = arena_->take(part.world_rank, size == world().host.size());
  std::vector<HostArena::Offer> offers(size, mine);
  std::vector<OutgoingPart> sends;
  std::vector<IncomingPart> receives;
  for (std::size_t i = 0; i < size; ++i) {
    const Rank peer = state.hosts.here()[i];
    if (peer == group.rank) continue;
    sends.push_back({peer, &mine, sizeof mine});
    receives.push_back({peer, &offers[i], sizeof mine});
  }
  // No other message of a new group can be under way.
  const auto exchange = messenger().start(group, subset_tag, sends, receives);
  wait_or_fail(
      wait_board(), world(), "opening a group", [&] { return exchange->done(); }, [this] { progress(); },
      [&] { return exchange->waiting_for(); });
  if (std::ranges::any_of(offers, [](const HostArena::Offer& offer) { return offer.slot < 0; }))
    return arena_->withdraw(mine);
  make(arena_->open(part.world_rank, part.rank, offers));
}

void MessageTransport::make_wait_board(const Group& everybody) {
  if (everybody.size() == 1) return;
  const std::size_t bytes = WaitBoard::footprint(everybody.size());
  wait_board_ = std::make_unique<WaitBoard>(allocate(everybody, bytes), world(), default_deadline());
}

void MessageTransport::forget(const Group& group) noexcept {
  next_tag_.erase(group.context);
  if (group.context == 0) wait_board_.reset();
}

void MessageTransport::progress() {
  poll();
  // A step may end a schedule, which then takes itself off the list.
  for (std::size_t i = 0; i < active_.size();) {
    Running* const running = active_[i];
    running->step();
    if (i < active_.size() && active_[i] == running) ++i;
  }
}

}  // namespace shoal::comm
