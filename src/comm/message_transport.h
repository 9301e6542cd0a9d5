// SPDX-License-Identifier: Apache-2.0
// What transports that exchange messages have in common: operations become schedules, and schedules that
// are under way are moved on together, whichever of them is waited for.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include "comm/messenger.h"
#include "comm/schedule.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

class MessageTransport : public Transport {
 public:
  void submit(const Group& group, const Operation& operation) override;
  std::unique_ptr<Pending> start(const Group& group, const Operation& operation) override;

  /// Moves the library and all started schedules on. Transports add what they need in poll().
  void progress() final;

 protected:
  virtual Messenger& messenger() = 0;
  /// Lets the library move data; throws `aborted` when the job is ending.
  virtual void poll() = 0;
  /// A context that is no longer used.
  void forget(const Group& group) noexcept { next_tag_.erase(group.context); }

 private:
  class Running;
  std::list<Running*> active_;
  std::map<std::uint64_t, int> next_tag_;  // of collectives, by context
};

}  // namespace shoal::comm
