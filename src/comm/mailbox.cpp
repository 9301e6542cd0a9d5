// SPDX-License-Identifier: Apache-2.0
// Layout on each rank: two cache lines for each peer, the counter of what it has taken and the line of the
// lent message that both copy, and in the rank's own place the window of its memory; then the rings.
#include "comm/mailbox.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "comm/direct_memory.h"
#include "comm/tuning.h"
#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

constexpr std::uint64_t slots = tuning::mailbox_slots;
constexpr std::size_t lines_bytes = 2 * tuning::cache_line;  // of a peer
constexpr std::uint32_t lent = ~std::uint32_t{0};  // in place of a fragment's length: its address follows
static_assert(sizeof(PeerMemory::Window) <= lines_bytes);

// With many ranks the slots shrink, so that all channels together stay at some tens of megabytes.
std::size_t slot_bytes_for(int size) {
  return size <= 32 ? tuning::mailbox_slot_bytes : size <= 256 ? 2048 : 512;
}

std::uint64_t load(const std::byte* word) {
  auto* number = reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(word));
  return std::atomic_ref<std::uint64_t>(*number).load(std::memory_order_acquire);
}

}  // namespace

struct Mailbox::Header {
  std::uint64_t fragment;  // number, from 1 on; written last
  std::uint64_t context;
  std::uint64_t message_bytes;
  std::uint32_t fragment_bytes;
  std::int32_t tag;
};

template <class Item>
void Mailbox::Queue<Item>::append(Item& item) {
  (last ? last->next : first) = &item;
  last = &item;
}

template <class Item>
void Mailbox::Queue<Item>::remove(Item& item) {
  Item* before = nullptr;
  for (Item* at = first; at; before = at, at = at->next) {
    if (at != &item) continue;
    (before ? before->next : first) = item.next;
    if (last == &item) last = before;
    item.next = nullptr;
    return;
  }
}

std::size_t Mailbox::footprint(int size) {
  return static_cast<std::size_t>(size) * (lines_bytes + slots * slot_bytes_for(size));
}

Mailbox::Mailbox(std::unique_ptr<SymmetricMemory> memory, const World& world, std::vector<Rank> peers)
    : memory_(std::move(memory)),
      world_(world),
      peers_(std::move(peers)),
      slot_bytes_(slot_bytes_for(world.size)),
      channels_(static_cast<std::size_t>(world.size)),
      staging_(slot_bytes_) {
  std::erase(peers_, world_.rank);
  for (const Rank peer : peers_) {
    channel(peer).carried = true;
    channel(peer).direct = memory_->direct(peer);
  }
}

std::size_t Mailbox::taken_offset(Rank receiver) const {
  return static_cast<std::size_t>(receiver) * lines_bytes;
}

CopyLine& Mailbox::copy_line(std::byte* senders_memory, Rank receiver) const {
  return *reinterpret_cast<CopyLine*>(senders_memory + taken_offset(receiver) + tuning::cache_line);
}

std::size_t Mailbox::slot_offset(Rank sender, std::uint64_t fragment) const {
  const auto first = static_cast<std::size_t>(world_.size) * lines_bytes;
  return first + (static_cast<std::size_t>(sender) * slots + fragment % slots) * slot_bytes_;
}

std::vector<PeerMemory::Window*> Mailbox::windows() {
  std::vector<PeerMemory::Window*> all(channels_.size());
  for (Rank rank = 0; rank < world_.size; ++rank) {
    std::byte* const its = rank == world_.rank ? memory_->local() : channel(rank).direct;
    if (its)
      all[static_cast<std::size_t>(rank)] = reinterpret_cast<PeerMemory::Window*>(its + taken_offset(rank));
  }
  return all;
}

// Puts the next fragment of the oldest send to `peer` if there is room for it.
bool Mailbox::put_fragment(Rank peer) {
  Channel& c = channel(peer);
  if (!c.sends.first) return false;
  if (c.put - c.known_taken >= slots) {
    c.known_taken = load(memory_->local() + taken_offset(peer));
    if (c.put - c.known_taken >= slots) return false;
  }
  Send& send = *c.sends.first;
  const bool lends = lends_ && c.direct && send.moved == 0 && send.bytes >= tuning::lent_message_bytes;
  const std::uint64_t address = address_of(send.data);
  const void* const source = lends ? static_cast<const void*>(&address) : send.data + send.moved;
  const std::size_t most =
      send.bytes <= tuning::short_message_bytes ? tuning::short_fragment_bytes : slot_bytes_;
  const std::size_t bytes =
      lends ? sizeof address : std::min({send.bytes - send.moved, most, slot_bytes_ - sizeof(Header)});
  const Header header{c.put + 1, send.context, send.bytes, lends ? lent : static_cast<std::uint32_t>(bytes),
                      send.tag};
  const std::size_t offset = slot_offset(world_.rank, c.put);
  constexpr std::size_t number_bytes = sizeof header.fragment;
  std::byte* const slot = c.direct ? c.direct + offset : staging_.data();
  std::memcpy(slot + number_bytes, &header.context, sizeof header - number_bytes);
  if (bytes > 0) std::memcpy(slot + sizeof header, source, bytes);
  if (c.direct)
    store_signal(c.direct, offset, header.fragment);
  else
    memory_->put_signal(peer, offset + number_bytes, slot + number_bytes,
                        sizeof header - number_bytes + bytes, offset, header.fragment);
  ++c.put;
  if (lends) {
    c.sends.remove(send);
    send.lent_at = c.put;
    c.lent.append(send);
    return true;
  }
  send.moved += bytes;
  if (send.moved == send.bytes) {
    c.sends.remove(send);
    send.done = true;
  }
  return true;
}

void Mailbox::look_at_lent(Channel& c, Rank peer) {
  c.known_taken = load(memory_->local() + taken_offset(peer));
  while (c.lent.first && c.lent.first->lent_at <= c.known_taken) {
    Send& send = *c.lent.first;
    c.lent.remove(send);
    send.done = true;
  }
  if (const Send* send = c.lent.first)
    help_copy(*peer_memory_, peer, copy_line(memory_->local(), peer), {send->lent_at, send->bytes},
              send->data);
}

// The message that is arriving, from `address` of the peer; true when all of it is there.
bool Mailbox::read_lent(Channel& c, Rank peer, std::byte* to, std::uint64_t address, std::size_t bytes) {
  const CopyShape shape{c.taken + 1, bytes};
  if (!c.receive || shape.pieces() == 1) {
    peer_memory_->read(peer, to, address, bytes);
    return true;
  }
  if (!c.reading)
    c.reading.emplace(*peer_memory_, peer, copy_line(c.direct, world_.rank), shape, to, address);
  if (!c.reading->advance()) return false;
  c.reading.reset();
  return true;
}

// Takes the next fragment that `peer` has put here, if there is one.
bool Mailbox::take_fragment(Rank peer) {
  Channel& c = channel(peer);
  const std::byte* const slot = memory_->local() + slot_offset(peer, c.taken);
  if (load(slot) != c.taken + 1) return false;
  Header header;
  std::memcpy(&header.context, slot + sizeof header.fragment, sizeof header - sizeof header.fragment);
  if (c.missing == 0 && !c.receive) {
    if (header.fragment_bytes == lent && leaves(c)) return false;
    begin_message(peer, header);
  }
  const bool is_lent = header.fragment_bytes == lent;
  const std::size_t bytes = is_lent ? header.message_bytes : header.fragment_bytes;
  std::byte* const target =
      c.receive ? c.receive->data + c.receive->moved : c.early.back().data.data() + c.early.back().received;
  if (is_lent) {
    std::uint64_t address = 0;
    std::memcpy(&address, slot + sizeof header, sizeof address);
    if (!read_lent(c, peer, target, address, bytes)) return false;
  } else if (bytes > 0) {
    std::memcpy(target, slot + sizeof header, bytes);
  }
  (c.receive ? c.receive->moved : c.early.back().received) += bytes;
  c.missing -= bytes;
  if (c.missing == 0 && c.receive) {
    c.receive->done = true;
    c.receive = nullptr;
  }
  ++c.taken;
  // Told late, since each time costs the sender a cache line; but before its ring is full, or when it waits.
  if (is_lent || c.taken - c.told >= slots / 2) tell_taken(peer);
  return true;
}

void Mailbox::tell_taken(Rank peer) {
  Channel& c = channel(peer);
  c.told = c.taken;
  if (c.direct) return store_signal(c.direct, taken_offset(world_.rank), c.taken);
  memory_->put_signal(peer, 0, nullptr, 0, taken_offset(world_.rank), c.taken);
}

void Mailbox::check_length(Rank peer, std::size_t expected, std::size_t sent) const {
  if (expected == sent) return;
  fail(ErrorCode::invalid_argument,
       fmt::format("recv on rank {} expects {} bytes, but rank {} ({}) sent {}", world_.rank, expected, peer,
                   world_.host[static_cast<std::size_t>(peer)], sent));
}

// Whether a lent message is left where it is for now. Not for long, since its sender may wait, and not when
// another one is expected behind it.
bool Mailbox::leaves(Channel& c) { return !c.receives.first && ++c.unwanted < tuning::patient_looks; }

void Mailbox::begin_message(Rank peer, const Header& header) {
  Channel& c = channel(peer);
  c.unwanted = 0;
  Receive* receive = c.receives.first;
  while (receive && !(receive->context == header.context && receive->tag == header.tag))
    receive = receive->next;
  if (receive) {
    check_length(peer, receive->bytes, header.message_bytes);
    c.receives.remove(*receive);
  } else {
    c.early.push_back({header.context, header.tag, std::vector<std::byte>(header.message_bytes)});
  }
  c.receive = receive;
  c.missing = header.message_bytes;
}

void Mailbox::post(Send& send) {
  channel(send.peer).sends.append(send);
  while (put_fragment(send.peer)) {
  }
}

// Gives `receive` the first early message that matches, or leaves it posted.
void Mailbox::post(Receive& receive) {
  Channel& c = channel(receive.peer);
  for (auto early = c.early.begin(); early != c.early.end(); ++early) {
    if (early->context != receive.context || early->tag != receive.tag) continue;
    check_length(receive.peer, receive.bytes, early->data.size());
    if (early->received > 0) std::memcpy(receive.data, early->data.data(), early->received);
    receive.moved = early->received;
    receive.done = early->received == early->data.size();
    if (!receive.done) c.receive = &receive;  // it is the one that is arriving
    c.early.erase(early);
    return;
  }
  c.receives.append(receive);
}

Mailbox::Send::~Send() {
  if (done) return;
  mailbox.channel(peer).sends.remove(*this);
  if (lent_at == 0) return;
  mailbox.channel(peer).lent.remove(*this);
  mailbox.peer_memory_->withdraw();  // the job is ending, and the data may go
}

Mailbox::Receive::~Receive() {
  if (done) return;
  Channel& c = mailbox.channel(peer);
  c.receives.remove(*this);
  if (c.receive != this) return;
  // The rest of its message still comes, but not here.
  c.reading.reset();
  c.receive = nullptr;
  Early& rest = c.early.emplace_back(Early{context, tag, std::vector<std::byte>(bytes)});
  rest.received = moved;
}

void Mailbox::advance(Rank peer) {
  Channel& c = channel(peer);
  if (c.lent.first) look_at_lent(c, peer);
  while (put_fragment(peer)) {
  }
  while (take_fragment(peer)) {
  }
}

void Mailbox::advance() {
  for (const Rank peer : peers_) advance(peer);
}

Mailbox::Transfers::Transfers(Mailbox& mailbox, const Group& group, const Operation& operation)
    : Transfers(mailbox, group, operation.tag) {
  if (operation.pattern == Pattern::recv)
    receive({operation.peer, operation.recv.data, operation.recv.bytes()});
  if (operation.pattern == Pattern::send) send({operation.peer, operation.send.data, operation.send.bytes()});
  for (const Part& part : operation.receives)
    if (part.peer != group.rank) receive({part.peer, part.buffer.data, part.buffer.bytes()});
  for (const Part& part : operation.sends)
    if (part.peer != group.rank) send({part.peer, part.buffer.data, part.buffer.bytes()});
}

void Mailbox::Transfers::receive(const IncomingPart& part) {
  mailbox_.post(receives_.add(mailbox_, world_rank(part.peer), group_.context, tag_,
                              static_cast<std::byte*>(part.data), part.bytes));
}

void Mailbox::Transfers::send(const OutgoingPart& part) {
  mailbox_.post(sends_.add(mailbox_, world_rank(part.peer), group_.context, tag_,
                           static_cast<std::byte*>(const_cast<void*>(part.data)), part.bytes));
}

// All are moved on, also while one of them waits.
bool Mailbox::Transfers::done() {
  bool all = true;
  const auto move = [&](const Transfer& item) {
    if (!item.done) mailbox_.advance(item.peer);
    all = all && item.done;
  };
  sends_.each(move);
  receives_.each(move);
  return all;
}

std::vector<Rank> Mailbox::Transfers::waiting_for() const {
  std::vector<Rank> ranks;
  const auto add = [&](const Transfer& item) {
    if (!item.done && std::find(ranks.begin(), ranks.end(), item.peer) == ranks.end())
      ranks.push_back(item.peer);
  };
  receives_.each(add);
  sends_.each(add);
  return ranks;
}

std::unique_ptr<Exchange> Mailbox::start(const Group& group, int tag, std::span<const OutgoingPart> sends,
                                         std::span<const IncomingPart> receives) {
  auto transfers = std::make_unique<Transfers>(*this, group, tag);
  for (const IncomingPart& part : receives) transfers->receive(part);
  for (const OutgoingPart& part : sends) transfers->send(part);
  return transfers;
}

}  // namespace shoal::comm
