// SPDX-License-Identifier: Apache-2.0
// Messages over symmetric memory.
//
// Every pair of ranks and direction has a channel: a ring of slots in the receiver's memory, and a counter of
// the slots that have been taken out again in the sender's. A message is cut into fragments that fit a slot.
// The first word of a slot is the number of the fragment in it, and is written last. Where the receiver's
// memory can be stored to, fragments are copied straight from the program's buffer into the slot and from
// there into the posted buffer; small ones travel in one cache line.
// Whoever waits also takes out what arrives from everybody, into the posted receive or, if there is none yet,
// into memory of its own; so two ranks that send to each other never block each other.
// Where ranks can read each other's ordinary memory (PeerMemory), a large message is lent: its only fragment
// holds the address, the receiver copies the data from there, and tells that the fragment has been taken. A
// sender that waits meanwhile copies some of it (SharedReading). The fragment waits for its receive a little,
// since data that goes into memory of the mailbox's own is copied twice.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "comm/messenger.h"
#include "comm/peer_memory.h"
#include "comm/shared_copy.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

class Mailbox final : public Messenger {
 public:
  /// Bytes of symmetric memory that a mailbox of `size` ranks takes on each.
  static std::size_t footprint(int size);

  /// `memory` is the same allocation on all ranks of the world, footprint(size) bytes. `peers` are the ranks
  /// that it carries messages to and from; the same choice on both sides.
  Mailbox(std::unique_ptr<SymmetricMemory> memory, const World& world, std::vector<Rank> peers);
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Messages that are under way; unlinked from the mailbox when they are dropped. Ranks are the world's.
  struct Transfer {
    Transfer(Mailbox& box, Rank other, std::uint64_t in_context, int with_tag, std::byte* at,
             std::size_t size)
        : mailbox(box), peer(other), context(in_context), tag(with_tag), data(at), bytes(size) {}
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    Mailbox& mailbox;
    const Rank peer;
    const std::uint64_t context;
    const int tag;
    std::byte* const data;
    const std::size_t bytes;
    std::size_t moved = 0;
    bool done = false;
  };
  struct Send : Transfer {
    using Transfer::Transfer;
    ~Send();
    Send* next = nullptr;
    std::uint64_t lent_at = 0;  // of a lent message: fragments put, with its own
  };
  struct Receive : Transfer {
    using Transfer::Transfer;
    ~Receive();
    Receive* next = nullptr;
  };
  /// The messages of an operation, which end together.
  class Transfers;

  bool carries(Rank peer) const { return channels_[static_cast<std::size_t>(peer)].carried; }

  /// Of ranks whose memory can be stored to, null of the others.
  std::vector<PeerMemory::Window*> windows();
  /// Large messages from others may be lent from now on; `memory` is used until the mailbox ends.
  void accept_lent(const PeerMemory& memory) { peer_memory_ = &memory; }
  /// Large messages are lent from now on, after all the others accept them.
  void lend() { lends_ = true; }

  /// Puts what there is room for. Takes nothing: a peer should have this rank's messages before time is spent
  /// on its own.
  void post(Send& send);
  /// Throws invalid_argument when what has come is not of the receive's length; so may any later call.
  void post(Receive& receive);
  /// Puts and takes what it can, to and from one peer.
  void advance(Rank peer);
  /// All the fragments that can be put and taken.
  void advance();

  std::unique_ptr<Exchange> start(const Group& group, int tag, std::span<const OutgoingPart> sends,
                                  std::span<const IncomingPart> receives) override;

 private:
  struct Header;
  // A message that came before its receive was posted; the last of a channel may be incomplete.
  struct Early {
    std::uint64_t context;
    int tag;
    std::vector<std::byte> data;
    std::size_t received = 0;
  };
  template <class Item>
  struct Queue {
    Item* first = nullptr;
    Item* last = nullptr;
    void append(Item& item);
    void remove(Item& item);
  };
  struct Channel {
    bool carried = false;
    std::byte* direct = nullptr;           // the peer's memory, or null
    std::uint64_t put = 0;                 // fragments
    std::uint64_t known_taken = 0;         // of them, as far as the peer has told
    std::uint64_t taken = 0;               // fragments that came
    std::uint64_t told = 0;                // of them, told to the peer
    std::size_t missing = 0;               // bytes of the message that is arriving
    int unwanted = 0;                      // looks at a lent message that no receive was posted for
    Receive* receive = nullptr;            // where it goes; null: into the last of `early`
    std::optional<SharedReading> reading;  // of it, if it is lent
    Queue<Send> sends;
    Queue<Send> lent;  // of which the peer has the address
    Queue<Receive> receives;
    std::list<Early> early;  // in order of arrival
  };

  Channel& channel(Rank peer) { return channels_[static_cast<std::size_t>(peer)]; }
  bool put_fragment(Rank peer);
  void look_at_lent(Channel& channel, Rank peer);
  bool read_lent(Channel& channel, Rank peer, std::byte* to, std::uint64_t address, std::size_t bytes);
  bool take_fragment(Rank peer);
  static bool leaves(Channel& channel);
  void begin_message(Rank peer, const Header& header);
  void tell_taken(Rank peer);
  void check_length(Rank peer, std::size_t expected, std::size_t sent) const;
  std::size_t slot_offset(Rank sender, std::uint64_t fragment) const;
  std::size_t taken_offset(Rank receiver) const;
  CopyLine& copy_line(std::byte* senders_memory, Rank receiver) const;

  std::unique_ptr<SymmetricMemory> memory_;
  const World& world_;
  std::vector<Rank> peers_;
  const PeerMemory* peer_memory_ = nullptr;
  bool lends_ = false;
  std::size_t slot_bytes_;
  std::vector<Channel> channels_;   // by rank of the world
  std::vector<std::byte> staging_;  // of a fragment for a peer that cannot be stored to
};

class Mailbox::Transfers final : public Exchange {
 public:
  Transfers(Mailbox& mailbox, const Group& group, int tag) : mailbox_(mailbox), group_(group), tag_(tag) {}
  /// Starts those messages of an exchange, send or recv that are not to this rank itself.
  Transfers(Mailbox& mailbox, const Group& group, const Operation& operation);

  void receive(const IncomingPart& part);
  void send(const OutgoingPart& part);

  /// Moves those on that are not done.
  bool done() override;
  std::vector<Rank> waiting_for() const override;

 private:
  // The mailbox holds pointers to them. Few take no memory of the heap.
  template <class Item>
  class Items {
   public:
    template <class... Arguments>
    Item& add(Arguments&&... arguments) {
      if (count_ < few_.size()) return few_[count_++].emplace(arguments...);
      return more_.emplace_back(arguments...);
    }
    template <class Use>
    void each(Use&& use) const {
      for (std::size_t i = 0; i < count_; ++i) use(*few_[i]);
      for (const Item& item : more_) use(item);
    }

   private:
    std::array<std::optional<Item>, 4> few_;
    std::size_t count_ = 0;
    std::list<Item> more_;
  };

  Rank world_rank(Rank rank) const { return group_.world_rank[static_cast<std::size_t>(rank)]; }

  Mailbox& mailbox_;
  const Group& group_;
  const int tag_;
  Items<Send> sends_;
  Items<Receive> receives_;
};

}  // namespace shoal::comm
