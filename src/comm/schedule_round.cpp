// SPDX-License-Identifier: Apache-2.0
#include "comm/schedule_round.h"

#include <algorithm>

#include "comm/host_collectives.h"

namespace shoal::comm {
namespace {

// A host step by messages: a schedule of its own, whose ranks are the places on this host.
class HostMessages final : public Exchange {
 public:
  HostMessages(Messenger& messenger, const Group& group, const Hosts& hosts, int tag,
               const Operation& operation)
      : messenger_(messenger), group_(group), tag_(tag) {
    const Group part = host_part(group, hosts);
    schedule_ = make_schedule(part, each_apart(part), operation, {.reproducible = true});
    for (Round& round : schedule_.rounds) {
      for (OutgoingPart& message : round.sends)
        message.peer = hosts.here()[static_cast<std::size_t>(message.peer)];
      for (IncomingPart& message : round.receives)
        message.peer = hosts.here()[static_cast<std::size_t>(message.peer)];
    }
  }

  bool done() override {
    for (; next_ < schedule_.rounds.size(); ++next_) {
      const Round& round = schedule_.rounds[next_];
      if (!exchange_) exchange_ = messenger_.start(group_, tag_, round.sends, round.receives);
      if (!exchange_->done()) return false;
      exchange_.reset();
      if (round.then) round.then();
    }
    return true;
  }

  std::vector<Rank> waiting_for() const override {
    return exchange_ ? exchange_->waiting_for() : std::vector<Rank>();
  }
  bool polls_library() const override { return exchange_ && exchange_->polls_library(); }

 private:
  Messenger& messenger_;
  const Group& group_;
  int tag_;
  Schedule schedule_;
  std::size_t next_ = 0;
  std::unique_ptr<Exchange> exchange_;
};

class All final : public Exchange {
 public:
  explicit All(std::vector<std::unique_ptr<Exchange>> parts) : parts_(std::move(parts)) {}

  bool done() override {
    std::erase_if(parts_, [](const auto& part) { return part->done(); });
    return parts_.empty();
  }

  std::vector<Rank> waiting_for() const override {
    std::vector<Rank> ranks;
    for (const auto& part : parts_)
      for (const Rank rank : part->waiting_for()) ranks.push_back(rank);
    return ranks;
  }
  bool polls_library() const override {
    return std::ranges::any_of(parts_, [](const auto& part) { return part->polls_library(); });
  }

 private:
  std::vector<std::unique_ptr<Exchange>> parts_;
};

}  // namespace

std::unique_ptr<Exchange> start_round(Messenger& messenger, HostCollectives* host, const Group& group,
                                      const Hosts& hosts, int tag, const Round& round) {
  if (round.host.empty()) return messenger.start(group, tag, round.sends, round.receives);
  std::vector<std::unique_ptr<Exchange>> parts;
  if (round.has_messages()) parts.push_back(messenger.start(group, tag, round.sends, round.receives));
  for (const HostStep& step : round.host) {
    Operation operation = step.operation;
    operation.counts = step.counts;
    operation.recv_counts = step.recv_counts;
    if (host)
      parts.push_back(host->start(operation));
    else
      parts.push_back(std::make_unique<HostMessages>(messenger, group, hosts, tag, operation));
  }
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_unique<All>(std::move(parts));
}

}  // namespace shoal::comm
