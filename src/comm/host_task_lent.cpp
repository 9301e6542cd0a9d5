// SPDX-License-Identifier: Apache-2.0
// Collectives whose data is lent: members tell each other addresses, and read where the data is.
#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "comm/host_task.h"
#include "comm/reduce.h"
#include "shoal/base/error.h"

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
  const std::uint64_t mine[3] = {address_of(op_.send.data), address_of(op_.recv.data), op_.send.bytes()};
  std::memcpy(place(me_, step), mine, sizeof mine);
}

std::uint64_t HostTask::address(Rank member, std::uint64_t step, bool of_output) const {
  std::uint64_t its[2] = {};
  std::memcpy(its, place(member, step), sizeof its);
  return its[of_output ? 1 : 0];
}

// What is written to another rank must fit: the mark of the operation says so, but for chance.
void HostTask::check_sizes(std::uint64_t step) const {
  for (Rank r = 0; r < size_; ++r) {
    std::uint64_t its[3] = {};
    std::memcpy(its, place(r, step), sizeof its);
    if (its[2] != op_.send.bytes())
      fail(ErrorCode::invalid_argument,
           fmt::format("{} on rank {} of {} bytes: rank {} has {}", to_string(op_.pattern), me_,
                       op_.send.bytes(), r, its[2]));
  }
}

bool HostTask::read_lent(std::uint64_t step) {
  if (shape_ == Shape::by_parts) {
    check_sizes(step);
    const Piece mine = part_of(op_.send.count, me_);
    combine_lent(step, mine, mine.begin);
    return true;
  }
  if (shape_ == Shape::one_shot) {
    combine_lent(step, {0, op_.send.count}, 0);
    return true;
  }
  if (shape_ == Shape::scatter_reduce) {
    Piece mine{0, op_.recv.count};
    for (Rank r = 0; r < me_; ++r) mine.begin += op_.counts[static_cast<std::size_t>(r)];
    combine_lent(step, mine, 0);
    return true;
  }
  return move_lent(step);
}

// `part` of all inputs, which becomes what begins at `to` of the output. (Where that is the input as well, no
// other member reads this part of it.)
void HostTask::combine_lent(std::uint64_t step, Piece part, std::int64_t to) {
  const auto most = static_cast<std::int64_t>(host_.limits_.lent_piece_bytes / element_);
  host_.scratch_.resize(bytes(most) * static_cast<std::size_t>(size_));
  const auto scratch = [&](Rank r) {
    return host_.scratch_.data() + bytes(most) * static_cast<std::size_t>(r);
  };
  const bool here = !rooted() || is_root();
  for (std::int64_t begin = 0; begin < part.count; begin += most) {
    const std::int64_t count = std::min(most, part.count - begin);
    for (Rank r = 0; r < size_; ++r) {
      const auto index = static_cast<std::size_t>(r);
      host_.inputs_[index] = r == me_ ? in(part.begin + begin) : scratch(r);
      if (r != me_)
        host_.peer_memory_->read(host_.world_rank_[index], scratch(r),
                                 address(r, step) + bytes(part.begin + begin), bytes(count));
    }
    std::byte* const result = here ? out(to + begin) : scratch(me_);
    comm::combine(op_.send.dtype, op_.reduction, host_.inputs_, result, count);
    if (shape_ == Shape::by_parts) give(step, result, to + begin, count);
  }
}

// A part of the result, to the others who want it: `count` elements from `at` on of their outputs.
void HostTask::give(std::uint64_t step, const std::byte* result, std::int64_t at, std::int64_t count) {
  for (Rank k = 1; k < size_; ++k) {
    const Rank r = (me_ + k) % size_;  // not all to the same member at once
    if (rooted() && r != op_.peer) continue;
    host_.peer_memory_->write(host_.world_rank_[static_cast<std::size_t>(r)],
                              address(r, step, true) + bytes(at), result, bytes(count));
  }
}

void HostTask::begin_moving(std::uint64_t step) {
  std::vector<std::int64_t> begin(static_cast<std::size_t>(size_));
  if (shape_ != Shape::from_root)
    std::exclusive_scan(op_.counts.begin(), op_.counts.end(), begin.begin(), std::int64_t{0});
  const auto begin_of = [&](Rank r) { return begin[static_cast<std::size_t>(r)]; };
  const auto from_root = [&](std::uint64_t address, std::int64_t count) {
    read_from(op_.peer, 0, address, count);
  };
  if (shape_ == Shape::from_root)
    return from_root(address(op_.peer, step, true), static_cast<std::int64_t>(op_.recv.bytes()));
  if (shape_ == Shape::scatter)
    return from_root(address(op_.peer, step) + bytes(begin_of(me_)), op_.recv.count);
  for (Rank k = 1; k < size_; ++k) {
    const Rank r = (me_ + k) % size_;  // not all from the same member at once
    read_from(r, begin_of(r), address(r, step), op_.counts[static_cast<std::size_t>(r)]);
  }
}

// `count` elements at `address` of the member, which become those from `at` on of the output.
void HostTask::read_from(Rank member, std::int64_t at, std::uint64_t address, std::int64_t count) {
  const Rank sender = host_.world_rank_[static_cast<std::size_t>(member)];
  const CopyShape shape{host_.step_, bytes(count), host_.limits_.shared_piece_bytes};
  const std::uint64_t few = shape_ == Shape::scatter ? tuning::scatter_pieces : 2;
  if (has_idle_side() && shape.pieces() >= few)
    readings_.emplace_back(*host_.peer_memory_, sender, copy_line(rooted() ? member : me_), shape, out(at),
                           address);
  else
    host_.peer_memory_->read(sender, out(at), address, bytes(count));
}

bool HostTask::move_lent(std::uint64_t step) {
  if (!moving_) begin_moving(step);
  moving_ = true;
  bool all = true;
  for (SharedReading& reading : readings_) all = reading.advance() && all;
  return all;
}

// While this rank waits until others have read its data: writes some of it to them.
void HostTask::help() {
  if (shape_ == Shape::gather) {
    if (!is_root()) help(op_.peer, me_, in(0), op_.send.count);
    return;
  }
  if (!is_root()) return;
  std::int64_t begin = 0;
  for (Rank r = 0; r < size_; ++r) {
    if (shape_ == Shape::from_root) {
      if (r != me_) help(r, r, out(0), static_cast<std::int64_t>(op_.recv.bytes()));
      continue;
    }
    const std::int64_t count = op_.counts[static_cast<std::size_t>(r)];
    if (r != me_) help(r, r, in(begin), count);
    begin += count;
  }
}

void HostTask::help(Rank reader, Rank line_of, const std::byte* from, std::int64_t count) {
  const std::uint64_t step = host_.step_ - 1;  // in which it was lent
  help_copy(*host_.peer_memory_, host_.world_rank_[static_cast<std::size_t>(reader)], copy_line(line_of),
            {step, bytes(count), host_.limits_.shared_piece_bytes}, from);
}

CopyLine& HostTask::copy_line(Rank member) const {
  return host_.members_[static_cast<std::size_t>(member)].words->copy;
}

}  // namespace shoal::comm
