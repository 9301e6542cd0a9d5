// SPDX-License-Identifier: Apache-2.0
// What transports that exchange messages have in common: operations become schedules, and schedules that
// are under way are moved on together, whichever of them is waited for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "comm/group_state.h"
#include "comm/host_arena.h"
#include "comm/mailbox.h"
#include "comm/messenger.h"
#include "comm/peer_memory.h"
#include "comm/schedule.h"
#include "comm/wait_board.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

class MessageTransport : public Transport {
 public:
  void submit(const Group& group, const Operation& operation) override;
  std::unique_ptr<Pending> start(const Group& group, const Operation& operation) override;

  WaitBoard* wait_board() override { return wait_board_.get(); }

  /// Moves the library and all started schedules on. Transports add what they need in poll().
  void progress() final;

 protected:
  virtual Messenger& messenger() = 0;
  /// Lets the library move data; throws `aborted` when the job is ending.
  virtual void poll() = 0;
  /// How the members lie on hosts, when a group is opened; without, each counts as a host. `host_of` is by
  /// rank of the world.
  static void place(const Group& group, const std::vector<int>& host_of) {
    group.state = std::make_shared<GroupState>(find_hosts(group, host_of));
  }
  /// Bytes of symmetric memory that use_host_memory() takes on each rank of a world.
  static std::size_t host_memory_bytes() { return HostArena::footprint(); }
  /// For collectives within a host: `memory` is over the world, host_memory_bytes().
  void use_host_memory(std::unique_ptr<SymmetricMemory> memory);
  /// Before the library ends: what was given goes.
  void drop_host_memory();
  /// Messages to ranks that `mailbox` carries need not pass through a schedule. `threads`: the ranks are
  /// threads of one process.
  void use_mailbox(Mailbox* mailbox, bool threads = false);
  /// Collective over `group`, after place(), when messages can be sent in it.
  void share_memory(const Group& group);
  void set_options(const ScheduleOptions& options) { options_ = options; }
  /// Whether nothing is under way that progress() would move on.
  bool is_idle() const { return active_.empty(); }
  /// Collective over the whole world, when its group is opened.
  void make_wait_board(const Group& everybody);
  /// A context that is no longer used.
  void forget(const Group& group) noexcept;

 private:
  class Running;
  class Passing;
  bool passes(const Group& group, const Operation& operation) const;
  void pass(Mailbox::Transfers& messages, const Group& group, Pattern pattern);
  void share_ordinary_memory(HostCollectives& host);
  std::shared_ptr<const Schedule> schedule_for(const Group& group, const Operation& operation);
  int tag_for(const Group& group, const Operation& operation);
  void pass_library_messages(const Group& group, const Operation& operation);

  std::vector<Running*> active_;  // in the order of their starts
  std::unique_ptr<HostArena> arena_;
  Mailbox* mailbox_ = nullptr;
  std::unique_ptr<PeerMemory> peer_memory_;
  bool lends_ = false;                     // all ranks of this host can read from each other
  std::map<std::uint64_t, int> next_tag_;  // of collectives, by context
  std::unique_ptr<WaitBoard> wait_board_;
  ScheduleOptions options_;
};

}  // namespace shoal::comm
