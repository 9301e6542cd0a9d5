// SPDX-License-Identifier: Apache-2.0
// A label travels beside every message of send, recv and exchange, in a group of its own: how many elements
// of which type were sent. The receiver compares.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shoal/comm/transport.h"

namespace shoal::comm {

class MessageLabels {
 public:
  /// Starts the labels of all messages of `operation`; `companion` is the group that carries them.
  MessageLabels(Transport& transport, const Group& companion, const Operation& operation);

  bool test() { return pending_->test(); }
  void wait() { pending_->wait(); }

  /// What is wrong with a message whose label has arrived, or "".
  std::string mismatch(const World& world, const Group& group) const;

 private:
  struct Label {
    std::int64_t arrived = 0;  // 1 in every label that was sent
    std::int64_t count = 0;
    std::int64_t dtype = 0;
  };
  struct Expected {
    Rank from;
    Label label;
  };

  Pattern pattern_;
  int tag_;
  std::vector<Label> outgoing_, incoming_;
  std::vector<Expected> expected_;    // of each incoming label
  std::unique_ptr<Pending> pending_;  // the last member: it is given up before its buffers are
};

}  // namespace shoal::comm
