// SPDX-License-Identifier: Apache-2.0
// Collectives whose data is lent: members tell each other addresses, and read where the data is.
#include <algorithm>
#include <cstring>

#include "comm/host_task.h"
#include "comm/reduce.h"

namespace shoal::comm {

bool HostTask::is_lent(std::int64_t count) const {
  return host_.peer_memory_ && bytes(count) >= host_.lent_bytes_;
}

// `count` elements are the largest part of a member.
bool HostTask::plan_lending(std::int64_t count) {
  lent_ = is_lent(count);
  inline_ = lent_;
  if (lent_) steps_ = 2;
  return lent_;
}

void HostTask::write_address(std::uint64_t step) {
  const std::uint64_t mine[2] = {address_of(op_.send.data), address_of(op_.recv.data)};
  std::memcpy(place(me_, step), mine, sizeof mine);
}

std::uint64_t HostTask::address(Rank member, std::uint64_t step, bool of_output) const {
  std::uint64_t its[2] = {};
  std::memcpy(its, place(member, step), sizeof its);
  return its[of_output ? 1 : 0];
}

// `count` elements at `address` of the member, which become those from `at` on of the output.
void HostTask::read_from(Rank member, std::int64_t at, std::uint64_t address, std::int64_t count) {
  host_.peer_memory_->read(host_.world_rank_[static_cast<std::size_t>(member)], out(at), address,
                           bytes(count));
}

void HostTask::read_lent(std::uint64_t step) {
  const Piece all{0, op_.send.count};
  switch (shape_) {
    case Shape::one_shot: return combine_lent(step, all, 0);
    case Shape::by_parts: {
      const Piece mine = part_of(all.count, me_);
      return collecting() ? collect_lent(step - 1) : combine_lent(step, mine, mine.begin);
    }
    case Shape::scatter_reduce: {
      Piece mine{0, op_.recv.count};
      for (Rank r = 0; r < me_; ++r) mine.begin += op_.counts[static_cast<std::size_t>(r)];
      return combine_lent(step, mine, 0);
    }
    default: return move_lent(step);
  }
}

// `part` of all inputs, which becomes what begins at `to` of the output. (Where that is the input as well, no
// other member reads this part of it.)
void HostTask::combine_lent(std::uint64_t step, Piece part, std::int64_t to) {
  const auto most = static_cast<std::int64_t>(host_.limits_.lent_piece_bytes / element_);
  host_.scratch_.resize(bytes(most) * static_cast<std::size_t>(size_));
  for (std::int64_t begin = 0; begin < part.count; begin += most) {
    const std::int64_t count = std::min(most, part.count - begin);
    for (Rank r = 0; r < size_; ++r) {
      const auto index = static_cast<std::size_t>(r);
      std::byte* const piece = host_.scratch_.data() + bytes(most) * index;
      host_.inputs_[index] = r == me_ ? in(part.begin + begin) : piece;
      if (r != me_)
        host_.peer_memory_->read(host_.world_rank_[index], piece,
                                 address(r, step) + bytes(part.begin + begin), bytes(count));
    }
    comm::combine(op_.send.dtype, op_.reduction, host_.inputs_, out(to + begin), count);
  }
}

// The parts that the others have combined, from their outputs; their addresses came in `step`.
void HostTask::collect_lent(std::uint64_t step) {
  for (Rank k = 1; k < size_; ++k) {
    const Rank r = (me_ + k) % size_;
    const Piece part = part_of(op_.send.count, r);
    read_from(r, part.begin, address(r, step, true) + bytes(part.begin), part.count);
  }
}

void HostTask::move_lent(std::uint64_t step) {
  const auto count_of = [&](Rank r) { return op_.counts[static_cast<std::size_t>(r)]; };
  const auto begin_of = [&](Rank member) {
    std::int64_t sum = 0;
    for (Rank r = 0; r < member; ++r) sum += count_of(r);
    return sum;
  };
  if (shape_ == Shape::scatter)
    return read_from(op_.peer, 0, address(op_.peer, step) + bytes(begin_of(me_)), op_.recv.count);
  for (Rank k = 1; k < size_; ++k) {
    const Rank r = (me_ + k) % size_;  // not all from the same member at once
    read_from(r, begin_of(r), address(r, step), count_of(r));
  }
}

}  // namespace shoal::comm
