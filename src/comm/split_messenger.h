// SPDX-License-Identifier: Apache-2.0
// Messages that go two ways: to ranks of this host through a Mailbox, to all others by the library.
// Between a pair all go the same way, so they keep their order.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/messenger.h"

namespace shoal::comm {

class SplitMessenger final : public Messenger {
 public:
  /// `near[r]`: rank r of the world is reached by `host`. Both outlive this.
  SplitMessenger(Messenger& host, Messenger& library, std::vector<bool> near)
      : host_(host), library_(library), near_(std::move(near)) {}

  std::unique_ptr<Exchange> start(const Group& group, int tag, std::span<const OutgoingPart> sends,
                                  std::span<const IncomingPart> receives) override;

 private:
  Messenger& host_;
  Messenger& library_;
  std::vector<bool> near_;
};

}  // namespace shoal::comm
