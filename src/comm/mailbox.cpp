// SPDX-License-Identifier: Apache-2.0
#include "comm/mailbox.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

constexpr std::uint64_t slots = 4;
constexpr std::size_t line = 64;  // counters of different writers never share a cache line

// With many ranks the slots shrink, so that all channels together stay at some tens of megabytes.
std::size_t slot_bytes_for(int size) { return size <= 32 ? 16384 : size <= 256 ? 4096 : 1024; }

std::size_t arrived_offset(Rank sender) { return static_cast<std::size_t>(sender) * 2 * line; }
std::size_t consumed_offset(Rank receiver) { return static_cast<std::size_t>(receiver) * 2 * line + line; }

}  // namespace

struct Mailbox::Header {
  std::uint64_t context;
  std::uint64_t message_bytes;
  std::uint32_t fragment_bytes;
  std::int32_t tag;
};

std::size_t Mailbox::footprint(int size) {
  return static_cast<std::size_t>(size) * (2 * line + slots * slot_bytes_for(size));
}

Mailbox::Mailbox(std::unique_ptr<SymmetricMemory> memory, const World& world)
    : memory_(std::move(memory)),
      world_(world),
      slot_bytes_(slot_bytes_for(world.size)),
      channels_(static_cast<std::size_t>(world.size)),
      staging_(slot_bytes_) {}

std::size_t Mailbox::slot_offset(Rank sender, std::uint64_t fragment) const {
  const auto first = static_cast<std::size_t>(world_.size) * 2 * line;
  return first + (static_cast<std::size_t>(sender) * slots + fragment % slots) * slot_bytes_;
}

std::uint64_t Mailbox::counter(std::size_t offset) const {
  auto* word = reinterpret_cast<std::uint64_t*>(memory_->local() + offset);
  return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
}

// Puts the next fragment of the oldest send to `peer` if there is room for it.
bool Mailbox::push_fragment(Rank peer) {
  Channel& channel = channels_[static_cast<std::size_t>(peer)];
  if (channel.sends.empty()) return false;
  if (channel.fragments_sent - counter(consumed_offset(peer)) >= slots) return false;
  Send& send = *channel.sends.front();
  const std::size_t bytes = std::min(send.bytes - send.sent, slot_bytes_ - sizeof(Header));
  const Header header{send.context, send.bytes, static_cast<std::uint32_t>(bytes), send.tag};
  std::memcpy(staging_.data(), &header, sizeof header);
  if (bytes > 0) std::memcpy(staging_.data() + sizeof header, send.data + send.sent, bytes);
  memory_->put_signal(peer, slot_offset(world_.rank, channel.fragments_sent), staging_.data(),
                      sizeof header + bytes, arrived_offset(world_.rank), channel.fragments_sent + 1);
  ++channel.fragments_sent;
  send.sent += bytes;
  if (send.sent == send.bytes) {
    send.done = true;
    channel.sends.pop_front();
  }
  return true;
}

// Takes the next fragment that `peer` has put here, if there is one.
bool Mailbox::take_fragment(Rank peer) {
  Channel& channel = channels_[static_cast<std::size_t>(peer)];
  if (counter(arrived_offset(peer)) == channel.fragments_taken) return false;
  const std::byte* slot = memory_->local() + slot_offset(peer, channel.fragments_taken);
  Header header;
  std::memcpy(&header, slot, sizeof header);
  if (channel.messages.empty() || channel.messages.back().received == channel.messages.back().bytes)
    begin_message(peer, header);
  Message& message = channel.messages.back();
  std::byte* const target = message.receive ? message.receive->data : message.early.data();
  if (header.fragment_bytes > 0)
    std::memcpy(target + message.received, slot + sizeof header, header.fragment_bytes);
  message.received += header.fragment_bytes;
  ++channel.fragments_taken;
  memory_->put_signal(peer, 0, nullptr, 0, consumed_offset(world_.rank), channel.fragments_taken);
  if (message.received == message.bytes && message.receive) finish_message(peer, message);
  return true;
}

void Mailbox::begin_message(Rank peer, const Header& header) {
  Channel& channel = channels_[static_cast<std::size_t>(peer)];
  Message& message = channel.messages.emplace_back(
      Message{.context = header.context, .tag = header.tag, .bytes = header.message_bytes, .early = {}});
  const auto wanted =
      std::find_if(channel.receives.begin(), channel.receives.end(), [&](const Receive* receive) {
        return receive->context == message.context && receive->tag == message.tag;
      });
  if (wanted == channel.receives.end()) {
    message.early.resize(message.bytes);
    return;
  }
  message.receive = *wanted;
  channel.receives.erase(wanted);
  if (message.receive->bytes != message.bytes)
    fail(ErrorCode::invalid_argument,
         fmt::format("recv on rank {} expects {} bytes, but rank {} ({}) sent {}", world_.rank,
                     message.receive->bytes, peer, world_.host[static_cast<std::size_t>(peer)],
                     message.bytes));
}

void Mailbox::finish_message(Rank peer, Message& message) {
  Channel& channel = channels_[static_cast<std::size_t>(peer)];
  message.receive->done = true;
  channel.messages.remove_if([&](const Message& other) { return &other == &message; });
}

// Gives `receive` the first early message that matches, or leaves it posted.
void Mailbox::post(Receive& receive) {
  const Rank peer = receive.peer;
  Channel& channel = channels_[static_cast<std::size_t>(peer)];
  for (Message& message : channel.messages) {
    if (message.receive || message.context != receive.context || message.tag != receive.tag) continue;
    if (message.bytes != receive.bytes)
      fail(ErrorCode::invalid_argument,
           fmt::format("recv on rank {} expects {} bytes, but rank {} ({}) sent {}", world_.rank,
                       receive.bytes, peer, world_.host[static_cast<std::size_t>(peer)], message.bytes));
    if (message.received > 0) std::memcpy(receive.data, message.early.data(), message.received);
    message.early.clear();
    message.receive = &receive;
    if (message.received == message.bytes) finish_message(peer, message);
    return;
  }
  channel.receives.push_back(&receive);
}

void Mailbox::advance() {
  for (Rank peer = 0; peer < world_.size; ++peer) {
    if (peer == world_.rank) continue;
    while (push_fragment(peer)) {
    }
    while (take_fragment(peer)) {
    }
  }
}

// The messages of one exchange. However it ends, no queue keeps a pointer into it.
class Mailbox::Transfers final : public Exchange {
 public:
  Transfers(Mailbox& mailbox, const Group& group, int tag, std::span<const OutgoingPart> sends,
            std::span<const IncomingPart> receives)
      : mailbox_(mailbox) {
    for (const IncomingPart& part : receives) {
      const Rank peer = group.world_rank[static_cast<std::size_t>(part.peer)];
      incoming_.push_back({peer, group.context, tag, static_cast<std::byte*>(part.data), part.bytes});
      mailbox_.post(incoming_.back());
    }
    for (const OutgoingPart& part : sends) {
      const Rank peer = group.world_rank[static_cast<std::size_t>(part.peer)];
      outgoing_.push_back({peer, group.context, tag, static_cast<const std::byte*>(part.data), part.bytes});
      mailbox_.channels_[static_cast<std::size_t>(peer)].sends.push_back(&outgoing_.back());
    }
    mailbox_.advance();
  }

  ~Transfers() override {
    if (done()) return;
    const auto holds = [](auto& own, const auto* item) {
      return std::any_of(own.begin(), own.end(), [&](auto& mine) { return &mine == item; });
    };
    for (Channel& channel : mailbox_.channels_) {
      std::erase_if(channel.sends, [&](const Send* send) { return holds(outgoing_, send); });
      channel.receives.remove_if([&](const Receive* receive) { return holds(incoming_, receive); });
      channel.messages.remove_if([&](const Message& message) { return holds(incoming_, message.receive); });
    }
  }

  bool done() override {
    const auto is_done = [](const auto& item) { return item.done; };
    return std::all_of(outgoing_.begin(), outgoing_.end(), is_done) &&
           std::all_of(incoming_.begin(), incoming_.end(), is_done);
  }

  std::string waiting_for() const override {
    std::string ranks;
    const auto add = [&](const auto& item) {
      if (item.done) return;
      const std::string name =
          fmt::format("rank {} ({})", item.peer, mailbox_.world_.host[static_cast<std::size_t>(item.peer)]);
      if (ranks.find(name) == std::string::npos) ranks += (ranks.empty() ? "" : ", ") + name;
    };
    for (const Receive& receive : incoming_) add(receive);
    for (const Send& send : outgoing_) add(send);
    return ranks;
  }

 private:
  Mailbox& mailbox_;
  std::deque<Send> outgoing_;  // deques, since the queues hold pointers to the elements
  std::deque<Receive> incoming_;
};

std::unique_ptr<Exchange> Mailbox::start(const Group& group, int tag, std::span<const OutgoingPart> sends,
                                         std::span<const IncomingPart> receives) {
  return std::make_unique<Transfers>(*this, group, tag, sends, receives);
}

}  // namespace shoal::comm
