// SPDX-License-Identifier: Apache-2.0
// Carries boxes of elements from their owners to where they are ghosts, and back for the adjoint: one
// neighbour exchange, one message a pair of ranks.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "array/box_writer.h"
#include "array/ghost_boxes.h"
#include "shoal/array/box.h"
#include "shoal/comm/communicator.h"

namespace shoal::array {

template <class T>
class BoxExchange {
 public:
  /// `boxes_of` tells the boxes of any rank; `target_shapes` are the shapes of this rank's arrays that they
  /// lie in.
  BoxExchange(const comm::Communicator& communicator, const Layout& layout,
              const std::function<std::vector<GhostBox>(Rank)>& boxes_of, std::vector<Shape> target_shapes);

  /// Collective. Fills the boxes of `targets` from the owners' blocks; `own` must not change until finish().
  void start(const T* own, std::span<T* const> targets);
  void finish();
  /// The adjoint, collective: adds the boxes of `targets` to the owners' elements; the rank's own box (if
  /// there is one) overwrites them first.
  void add_back(std::span<const T* const> targets, T* own);

 private:
  // What travels between this rank and a peer, one box after the other.
  struct Message {
    Rank peer = 0;
    std::vector<GhostBox> boxes;
    Index size = 0;
    Index offset = 0;       // in the staging memory
    bool in_place = false;  // the block (sends) or a target (receives) itself serves as the message
    Index place = 0;        // where it lies there, then
  };
  static Message& message_of(std::vector<Message>& messages, Rank peer);
  Index lay_out(std::vector<Message>& messages, bool sends);
  Place in_block(const GhostBox& box) const { return {block_, box.source}; }
  Place in_target(const GhostBox& box) const {
    return {target_shapes_[static_cast<std::size_t>(box.target)], box.place};
  }

  comm::Communicator communicator_;
  Shape block_;
  std::vector<Shape> target_shapes_;
  std::vector<GhostBox> local_;  // from the rank's own block, or zeros; the rank's own box first
  std::vector<Message> sends_, receives_;
  std::vector<T> sent_, received_;  // staging
  std::vector<T*> targets_;         // of the exchange under way
  BoxWriter<T> writer_;
  comm::Request request_;  // last: what it uses is above
};

}  // namespace shoal::array
