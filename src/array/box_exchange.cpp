// SPDX-License-Identifier: Apache-2.0
#include "array/box_exchange.h"

#include <algorithm>

#include "shoal/base/error.h"

namespace shoal::array {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Of halo exchanges on a communicator, so that they do not mix with a program's own messages of tag 0.
constexpr int tag = 7101;

}  // namespace

template <class T>
typename BoxExchange<T>::Message& BoxExchange<T>::message_of(std::vector<Message>& messages, Rank peer) {
  // Peers come in ascending order for sends, in any for receives.
  const auto found =
      std::find_if(messages.begin(), messages.end(), [peer](const Message& m) { return m.peer == peer; });
  if (found != messages.end()) return *found;
  messages.push_back({});
  messages.back().peer = peer;
  return messages.back();
}

template <class T>
BoxExchange<T>::BoxExchange(const comm::Communicator& communicator, const Layout& layout,
                            const std::function<std::vector<GhostBox>(Rank)>& boxes_of,
                            std::vector<Shape> target_shapes)
    : communicator_(communicator),
      block_(layout.block(communicator.rank()).extent),
      target_shapes_(std::move(target_shapes)) {
  const Rank me = communicator.rank();
  for (Rank rank = 0; rank < communicator.size(); ++rank)
    for (GhostBox& box : boxes_of(rank)) {
      const bool mine = rank == me, from_me = box.owner == me;
      if (mine && (from_me || box.owner < 0))
        local_.push_back(std::move(box));
      else if (mine)
        message_of(receives_, box.owner).boxes.push_back(std::move(box));
      else if (from_me)
        message_of(sends_, rank).boxes.push_back(std::move(box));
    }
  // Before those that it may write zeros to. Received ones are never in its gaps in place: there is one run
  // of the own box on each side of a gap, so a ghost box has a part in several.
  std::stable_partition(local_.begin(), local_.end(), [](const GhostBox& box) { return box.own; });
  sent_.resize(at(lay_out(sends_, true)));
  received_.resize(at(lay_out(receives_, false)));
}

template <class T>
Index BoxExchange<T>::lay_out(std::vector<Message>& messages, bool sends) {
  std::sort(messages.begin(), messages.end(),
            [](const Message& a, const Message& b) { return a.peer < b.peer; });
  Index staged = 0;
  for (Message& message : messages) {
    for (const GhostBox& box : message.boxes) message.size += size_of_shape(box.extent);
    message.offset = staged;
    staged += message.size;
    if (message.boxes.size() != 1) continue;
    const GhostBox& box = message.boxes.front();
    const std::optional<Index> place = contiguous_offset(sends ? in_block(box) : in_target(box), box.extent);
    message.in_place = place.has_value();
    message.place = place.value_or(0);
  }
  return staged;
}

template <class T>
void BoxExchange<T>::start(const T* own, std::span<T* const> targets) {
  if (!targets_.empty())
    fail(ErrorCode::invalid_argument, "an exchange of ghost cells is started while one is under way");
  targets_.assign(targets.begin(), targets.end());
  std::vector<comm::Part> sends, receives;
  for (const Message& message : sends_) {
    const T* data = own + message.place;
    if (!message.in_place) {
      T* packed = sent_.data() + message.offset;
      data = packed;
      for (const GhostBox& box : message.boxes) {
        copy_box(own, in_block(box), packed, {box.extent, Shape(box.extent.size(), 0)}, box.extent);
        packed += size_of_shape(box.extent);
      }
    }
    sends.push_back(comm::Communicator::part(message.peer, std::span(data, at(message.size))));
  }
  for (const Message& message : receives_) {
    T* data = message.in_place ? targets_[at(message.boxes.front().target)] + message.place
                               : received_.data() + message.offset;
    receives.push_back(comm::Communicator::part(message.peer, std::span(data, at(message.size))));
  }
  request_ = communicator_.exchange_async(sends, receives, tag);
  for (const GhostBox& box : local_) {
    T* target = targets_[at(box.target)];
    if (box.owner < 0)
      clear_box(target, in_target(box), box.extent);
    else if (box.own && writer_.suits(box.extent))
      writer_.copy(own, in_block(box), target, in_target(box), box.extent);
    else
      copy_box(own, in_block(box), target, in_target(box), box.extent);
  }
}

template <class T>
void BoxExchange<T>::finish() {
  if (targets_.empty()) fail(ErrorCode::invalid_argument, "no exchange of ghost cells has been started");
  request_.wait();
  for (const Message& message : receives_) {
    if (message.in_place) continue;
    const T* data = received_.data() + message.offset;
    for (const GhostBox& box : message.boxes) {
      copy_box(data, {box.extent, Shape(box.extent.size(), 0)}, targets_[at(box.target)], in_target(box),
               box.extent);
      data += size_of_shape(box.extent);
    }
  }
  targets_.clear();
}

template <class T>
void BoxExchange<T>::add_back(std::span<const T* const> targets, T* own) {
  if (!targets_.empty())
    fail(ErrorCode::invalid_argument, "ghost cells are added back while an exchange is under way");
  std::vector<comm::Part> sends, receives;
  for (const Message& message : receives_) {
    const T* data = targets[at(message.boxes.front().target)] + message.place;
    if (!message.in_place) {
      T* packed = received_.data() + message.offset;
      data = packed;
      for (const GhostBox& box : message.boxes) {
        copy_box(targets[at(box.target)], in_target(box), packed, {box.extent, Shape(box.extent.size(), 0)},
                 box.extent);
        packed += size_of_shape(box.extent);
      }
    }
    sends.push_back(comm::Communicator::part(message.peer, std::span(data, at(message.size))));
  }
  for (const Message& message : sends_)
    receives.push_back(
        comm::Communicator::part(message.peer, std::span(sent_.data() + message.offset, at(message.size))));
  comm::Request request = communicator_.exchange_async(sends, receives, tag);
  for (const GhostBox& box : local_) {
    if (!box.own) break;
    const T* target = targets[at(box.target)];
    if (writer_.suits(box.extent))
      writer_.copy(target, in_target(box), own, in_block(box), box.extent);
    else
      copy_box(target, in_target(box), own, in_block(box), box.extent);
  }
  for (const GhostBox& box : local_)
    if (!box.own && box.owner >= 0)
      add_box(targets[at(box.target)], in_target(box), own, in_block(box), box.extent);
  request.wait();
  // In the order of ranks, whichever message came first.
  for (const Message& message : sends_) {
    const T* data = sent_.data() + message.offset;
    for (const GhostBox& box : message.boxes) {
      add_box(data, {box.extent, Shape(box.extent.size(), 0)}, own, in_block(box), box.extent);
      data += size_of_shape(box.extent);
    }
  }
}

template class BoxExchange<float>;
template class BoxExchange<double>;
template class BoxExchange<std::complex<float>>;
template class BoxExchange<std::complex<double>>;

}  // namespace shoal::array
