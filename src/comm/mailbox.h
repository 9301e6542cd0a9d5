// SPDX-License-Identifier: Apache-2.0
// Messages over symmetric memory, for transports whose library has puts but no messages.
//
// Every pair of ranks and direction has a channel: a ring of slots in the receiver's memory and two
// counters, `arrived` (at the receiver: fragments put so far) and `consumed` (at the sender: fragments
// taken out so far). A message is cut into fragments that fit a slot. Whoever waits also takes out
// what arrives from everybody, into the posted receive or, if there is none yet, into memory of its
// own; so two ranks that send to each other never block each other.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "comm/messenger.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

class Mailbox final : public Messenger {
 public:
  /// Bytes of symmetric memory that a mailbox of `size` ranks takes on each.
  static std::size_t footprint(int size);

  /// `memory` is the same allocation on all ranks of the world, footprint(size) bytes.
  Mailbox(std::unique_ptr<SymmetricMemory> memory, const World& world);

  std::unique_ptr<Exchange> start(const Group& group, int tag, std::span<const OutgoingPart> sends,
                                  std::span<const IncomingPart> receives) override;

  /// Puts and takes all the fragments that can be.
  void advance();

 private:
  struct Header;
  class Transfers;
  struct Send {
    Rank peer;  // in the world
    std::uint64_t context;
    int tag;
    const std::byte* data;
    std::size_t bytes;
    std::size_t sent = 0;
    bool done = false;
  };
  struct Receive {
    Rank peer;
    std::uint64_t context;
    int tag;
    std::byte* data;
    std::size_t bytes;
    bool done = false;
  };
  // A message that is arriving, or has arrived before its receive was posted.
  struct Message {
    std::uint64_t context;
    int tag;
    std::size_t bytes;
    std::size_t received = 0;
    Receive* receive = nullptr;  // where it goes; null: into `early`
    std::vector<std::byte> early;
  };
  struct Channel {
    std::uint64_t fragments_sent = 0;
    std::uint64_t fragments_taken = 0;
    std::deque<Send*> sends;
    std::list<Receive*> receives;
    std::list<Message> messages;  // in order of arrival; only the last may be incomplete
  };

  bool push_fragment(Rank peer);
  bool take_fragment(Rank peer);
  void begin_message(Rank peer, const Header& header);
  void finish_message(Rank peer, Message& message);
  void post(Receive& receive);
  std::size_t slot_offset(Rank sender, std::uint64_t fragment) const;
  std::uint64_t counter(std::size_t offset) const;

  std::unique_ptr<SymmetricMemory> memory_;
  const World& world_;
  std::size_t slot_bytes_;
  std::vector<Channel> channels_;
  std::vector<std::byte> staging_;
};

}  // namespace shoal::comm
