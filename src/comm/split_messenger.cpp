// SPDX-License-Identifier: Apache-2.0
#include "comm/split_messenger.h"

#include <algorithm>
#include <utility>

namespace shoal::comm {
namespace {

class Both final : public Exchange {
 public:
  Both(std::unique_ptr<Exchange> host, std::unique_ptr<Exchange> library)
      : host_(std::move(host)), library_(std::move(library)) {}

  // Both are moved on, also while one of them waits.
  bool done() override {
    const bool host = host_->done(), library = library_->done();
    return host && library;
  }
  std::vector<Rank> waiting_for() const override {
    std::vector<Rank> ranks;
    for (Exchange* exchange : {host_.get(), library_.get()})
      if (!exchange->done())
        for (const Rank rank : exchange->waiting_for()) ranks.push_back(rank);
    return ranks;
  }
  bool polls_library() const override { return true; }

 private:
  std::unique_ptr<Exchange> host_, library_;
};

}  // namespace

std::unique_ptr<Exchange> SplitMessenger::start(const Group& group, int tag,
                                                std::span<const OutgoingPart> sends,
                                                std::span<const IncomingPart> receives) {
  const auto near = [&](const auto& part) -> bool {
    return near_[static_cast<std::size_t>(group.world_rank[static_cast<std::size_t>(part.peer)])];
  };
  const auto far = [&](const auto& part) { return !near(part); };
  if (std::ranges::all_of(sends, far) && std::ranges::all_of(receives, far))
    return library_.start(group, tag, sends, receives);
  std::vector<OutgoingPart> near_sends, far_sends;
  std::vector<IncomingPart> near_receives, far_receives;
  for (const OutgoingPart& part : sends) (near(part) ? near_sends : far_sends).push_back(part);
  for (const IncomingPart& part : receives) (near(part) ? near_receives : far_receives).push_back(part);
  if (far_sends.empty() && far_receives.empty()) return host_.start(group, tag, sends, receives);
  // What goes within the host takes little time, and others may wait for it.
  auto host = host_.start(group, tag, near_sends, near_receives);
  return std::make_unique<Both>(std::move(host), library_.start(group, tag, far_sends, far_receives));
}

}  // namespace shoal::comm
