// SPDX-License-Identifier: Apache-2.0
#include "comm/host_task.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "comm/reduce.h"
#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Of what must be the same on all members: the pattern in the upper four bits, and a hash.
std::uint16_t mark_of(Pattern pattern, std::uint64_t hash) {
  hash ^= hash >> 36;
  hash ^= hash >> 24;
  hash ^= hash >> 12;
  return static_cast<std::uint16_t>((static_cast<unsigned>(pattern) + 1) << 12 | (hash & 0xfff));
}

std::uint64_t hash_of(std::span<const std::int64_t> counts, std::uint64_t hash) {
  for (const std::int64_t count : counts)
    hash = hash * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(count);
  return hash;
}

}  // namespace

HostTask::HostTask(HostCollectives& host, const Operation& operation)
    : host_(host), op_(operation), me_(host.rank_), size_(host.size()) {
  plan();
  if (steps_ == 0) copy_own();
}

// Given up half-way: the job is ending, and what was lent may go.
HostTask::~HostTask() {
  const bool lends = lent_ || shape_ == Shape::all_to_all;
  if (lends && at_ < steps_ && host_.peer_memory_) host_.peer_memory_->withdraw();
}

// How many steps; the same on all members, since it depends only on what is the same on all.
void HostTask::plan() {
  std::uint64_t same = static_cast<std::uint64_t>(op_.peer);
  switch (op_.pattern) {
    case Pattern::barrier: break;
    case Pattern::broadcast:
      shape_ = Shape::from_root;
      if (const auto count = static_cast<std::int64_t>(op_.recv.bytes());
          op_.recv.bytes() < host_.limits_.lent_broadcast_bytes || !plan_lending(count))
        plan_chunks(count, 1);
      same += op_.recv.bytes() << 8;
      break;
    case Pattern::reduce:
    case Pattern::all_reduce:
    case Pattern::scan:
    case Pattern::exclusive_scan:
      plan_reduction();
      same += static_cast<std::uint64_t>(op_.send.count) << 16 |
              static_cast<std::uint64_t>(op_.send.dtype) << 8 |
              static_cast<std::uint64_t>(op_.reduction) << 4;
      break;
    case Pattern::reduce_scatter:
      shape_ = Shape::scatter_reduce;
      element_ = size_of(op_.send.dtype);
      if (const auto count = largest(op_.counts, -1); !plan_lending(count)) plan_chunks(count, size_);
      same = hash_of(op_.counts, static_cast<std::uint64_t>(op_.send.dtype) << 4 |
                                     static_cast<std::uint64_t>(op_.reduction));
      break;
    case Pattern::gather:
    case Pattern::all_gather:
      shape_ = Shape::gather;
      element_ = size_of(op_.send.dtype);
      if (const auto count = largest(op_.counts, op_.pattern == Pattern::gather ? op_.peer : -1);
          !plan_lending(count))
        plan_chunks(count, 1);
      same = hash_of(op_.counts, same << 8 | element_);
      break;
    case Pattern::scatter:
      shape_ = Shape::scatter;
      element_ = size_of(op_.recv.dtype);
      if (const auto count = largest(op_.counts, op_.peer); !plan_lending(count)) plan_chunks(count, size_);
      same = hash_of(op_.counts, same << 8 | element_);
      break;
    case Pattern::all_to_all:
      plan_all_to_all();
      same = element_;
      break;
    case Pattern::exchange:
    case Pattern::send:
    case Pattern::recv: fail(ErrorCode::invalid_argument, "messages are no collectives");
  }
  mark_ = mark_of(op_.pattern, same);
}

// `count` elements of each of `parts` parts, in as few equal rounds as there is room for.
void HostTask::plan_chunks(std::int64_t count, int parts) {
  if (bytes(count) * static_cast<std::size_t>(parts) <= sizeof(HostLine::payload)) {
    inline_ = true;
    chunk_ = count;
    steps_ = count > 0 ? 1 : 0;
    return;
  }
  const auto most =
      static_cast<std::int64_t>(host_.chunk_bytes_ / static_cast<std::size_t>(parts) / element_);
  steps_ = divide_up(count, most);
  chunk_ = divide_up(count, steps_);
}

void HostTask::plan_reduction() {
  element_ = size_of(op_.send.dtype);
  const std::size_t all = op_.send.bytes();
  const bool scan = op_.pattern == Pattern::scan || op_.pattern == Pattern::exclusive_scan;
  // (Four ranks on two cores gain nothing; with a core for each it was not measured.)
  if (!scan && size_ == 2 && all >= host_.limits_.lent_reduce_bytes && plan_lending(op_.send.count)) {
    const bool by_root = op_.pattern == Pattern::reduce && all < host_.limits_.parts_reduce_bytes;
    shape_ = by_root ? Shape::one_shot : Shape::by_parts;
    return;
  }
  plan_chunks(op_.send.count, 1);
  const bool by_parts = !scan && size_ > 2 && all > host_.limits_.one_shot_bytes;
  shape_ = by_parts ? Shape::by_parts : Shape::one_shot;
  if (by_parts) steps_ *= 2;
}

// A rank does not know how much others send to each other, hence how many steps there are: all tell each
// other in the first. Parts that are lent are read in the first, and a second one says so.
void HostTask::plan_all_to_all() {
  shape_ = Shape::all_to_all;
  element_ = size_of(op_.send.dtype);
  chunk_ = static_cast<std::int64_t>((host_.area_bytes() - sizeof(std::uint64_t)) / element_);
  for (Rank r = 0; r < size_; ++r) {
    const std::int64_t count = op_.counts[static_cast<std::size_t>(r)];
    if (r != me_) steps_ = std::max(steps_, is_lent(count) ? 2 : divide_up(count, chunk_));
  }
}

std::int64_t HostTask::largest(std::span<const std::int64_t> counts, Rank but) const {
  std::int64_t most = 0;
  for (Rank r = 0; r < size_; ++r)
    if (r != but) most = std::max(most, counts[static_cast<std::size_t>(r)]);
  return most;
}

bool HostTask::advance() {
  for (;;) {
    if (!published_) {
      if (at_ == steps_) return true;
      if (writes()) {
        if (!host_.reached(next_, size_, host_.step_, 0)) return false;
        write(host_.step_ + 1);
      }
      host_.publish(mark_);
      published_ = true;
      next_ = awaited().begin;
      if (at_ == 0) copy_own();
    }
    const Members peers = awaited();
    if (closing() && has_idle_side()) help();
    if (!host_.reached(next_, peers.end, host_.step_, mark_)) return false;
    if (peers.end - peers.begin == size_) host_.seen_ = host_.step_;
    if (reads() && !read(host_.step_)) return false;
    published_ = false;
    next_ = 0;
    ++at_;
  }
}

std::vector<Rank> HostTask::silent() const {
  std::vector<Rank> ranks;
  const Members members = published_ ? awaited() : Members{0, size_};
  for (Rank r = members.begin; r < members.end; ++r)
    if (r != me_ && host_.latest(r) < host_.step_) ranks.push_back(r);
  return ranks;
}

// Only who writes must know that the others have left the step before the last.
bool HostTask::writes() const {
  if (lent_ && at_ > 0) return false;
  switch (shape_) {
    case Shape::signal: return false;
    case Shape::from_root:
    case Shape::scatter: return is_root();
    case Shape::one_shot:
      if (op_.pattern == Pattern::all_reduce) return true;
      return op_.pattern == Pattern::reduce ? !is_root() : me_ + 1 < size_;
    case Shape::by_parts: return !collecting();
    case Shape::gather: return !(rooted() && is_root());
    case Shape::scatter_reduce:
    case Shape::all_to_all: return true;
  }
  return false;
}

HostTask::Members HostTask::awaited() const {
  const Members all{0, size_}, none{0, 0}, root{op_.peer, op_.peer + 1};
  if (closing()) {
    if (shape_ != Shape::by_parts && rooted()) return is_root() ? none : root;
    return (shape_ == Shape::scatter || shape_ == Shape::from_root) && !is_root() ? none : all;
  }
  switch (shape_) {
    case Shape::from_root:
    case Shape::scatter: return is_root() ? none : root;
    case Shape::one_shot:
      if (op_.pattern == Pattern::scan || op_.pattern == Pattern::exclusive_scan) return {0, me_};
      [[fallthrough]];
    case Shape::gather: return rooted() && !is_root() ? none : all;
    case Shape::by_parts: return collecting() && rooted() && !is_root() ? none : all;
    case Shape::signal:
    case Shape::scatter_reduce:
    case Shape::all_to_all: return all;
  }
  return all;
}

bool HostTask::reads() const {
  if (closing()) return false;
  switch (shape_) {
    case Shape::signal: return false;
    case Shape::from_root:
    case Shape::scatter: return !is_root();
    case Shape::one_shot:
    case Shape::gather: return !rooted() || is_root();
    case Shape::by_parts: return !collecting() || !rooted() || is_root();
    case Shape::scatter_reduce:
    case Shape::all_to_all: return true;
  }
  return true;
}

void HostTask::write(std::uint64_t step) {
  if (lent_) return write_address(step);
  switch (shape_) {
    case Shape::signal: return;
    case Shape::from_root: {
      const Piece p = piece(static_cast<std::int64_t>(op_.recv.bytes()));
      return copy_bytes(place(me_, step), out(p.begin), bytes(p.count));
    }
    case Shape::one_shot:
    case Shape::gather: {
      const Piece p = piece(op_.send.count);
      return copy_bytes(place(me_, step), in(p.begin), bytes(p.count));
    }
    case Shape::by_parts: return write_all_but_my_part(step);
    case Shape::scatter_reduce:
    case Shape::scatter: return write_chunks_of_parts(step);
    case Shape::all_to_all: return write_all_to_all(step);
  }
}

bool HostTask::read(std::uint64_t step) {
  if (lent_) return read_lent(step);
  read_places(step);
  return true;
}

void HostTask::read_places(std::uint64_t step) {
  switch (shape_) {
    case Shape::signal: return;
    case Shape::from_root: {
      const Piece p = piece(static_cast<std::int64_t>(op_.recv.bytes()));
      return copy_bytes(out(p.begin), place(op_.peer, step), bytes(p.count));
    }
    case Shape::one_shot: return combine_all(step);
    case Shape::by_parts: return collecting() ? collect_parts(step) : combine_my_part(step);
    case Shape::scatter_reduce: return combine_scatter_reduce(step);
    case Shape::gather: return read_gather(step);
    case Shape::scatter: {
      const Piece p = piece(op_.recv.count);
      return copy_bytes(out(p.begin), place(op_.peer, step) + bytes(chunk_ * me_), bytes(p.count));
    }
    case Shape::all_to_all: return read_all_to_all(step);
  }
}

// What a rank gives to itself.
void HostTask::copy_own() {
  if (op_.pattern == Pattern::gather || op_.pattern == Pattern::all_gather ||
      op_.pattern == Pattern::scatter || op_.pattern == Pattern::all_to_all) {
    const bool mine = op_.pattern == Pattern::all_gather || op_.pattern == Pattern::all_to_all || is_root();
    if (!mine) return;
    const auto before = [&](std::span<const std::int64_t> counts) {
      std::int64_t sum = 0;
      for (Rank r = 0; r < me_; ++r) sum += counts[static_cast<std::size_t>(r)];
      return sum;
    };
    const std::size_t length = bytes(op_.counts[static_cast<std::size_t>(me_)]);
    if (op_.pattern == Pattern::scatter)
      copy_bytes(out(0), in(before(op_.counts)), length);
    else if (op_.pattern == Pattern::all_to_all)
      copy_bytes(out(before(op_.recv_counts)), in(before(op_.counts)), length);
    else
      copy_bytes(out(before(op_.counts)), in(0), length);
  }
}

void HostTask::combine_all(std::uint64_t step) {
  const Piece p = piece(op_.send.count);
  const bool scan = op_.pattern == Pattern::scan, exclusive = op_.pattern == Pattern::exclusive_scan;
  if (exclusive && me_ == 0) return fill_identity(op_.recv.dtype, op_.reduction, out(p.begin), p.count);
  const Rank end = exclusive ? me_ : scan ? me_ + 1 : size_;
  combine(0, end, in(p.begin), 0, step, out(p.begin), p.count);
}

void HostTask::write_all_but_my_part(std::uint64_t step) {
  const Piece p = piece(op_.send.count), mine = part_of(p.count, me_);
  const std::int64_t after = mine.begin + mine.count;
  copy_bytes(place(me_, step), in(p.begin), bytes(mine.begin));
  copy_bytes(place(me_, step) + bytes(after), in(p.begin + after), bytes(p.count - after));
}

// The result goes into this rank's place for the next step, whose half is free: all have begun this one.
void HostTask::combine_my_part(std::uint64_t step) {
  const Piece p = piece(op_.send.count), mine = part_of(p.count, me_);
  std::byte* const result = place(me_, step + 1);
  const bool here = !rooted() || is_root();
  std::byte* const target = here ? out(p.begin + mine.begin) : result;
  combine(0, size_, in(p.begin + mine.begin), mine.begin, step, target, mine.count);
  if (!rooted()) copy_bytes(result, target, bytes(mine.count));
}

void HostTask::collect_parts(std::uint64_t step) {
  const Piece p = piece(op_.send.count);
  for (Rank k = 1; k < size_; ++k) {
    const Rank r = (me_ + k) % size_;  // not all at the same member at once
    const Piece part = part_of(p.count, r);
    copy_bytes(out(p.begin + part.begin), place(r, step), bytes(part.count));
  }
}

void HostTask::write_chunks_of_parts(std::uint64_t step) {
  std::int64_t begin = 0;
  for (Rank r = 0; r < size_; ++r) {
    const std::int64_t count = op_.counts[static_cast<std::size_t>(r)];
    const Piece p = piece(count);
    if (r != me_) copy_bytes(place(me_, step) + bytes(chunk_ * r), in(begin + p.begin), bytes(p.count));
    begin += count;
  }
}

void HostTask::combine_scatter_reduce(std::uint64_t step) {
  std::int64_t begin = 0;
  for (Rank r = 0; r < me_; ++r) begin += op_.counts[static_cast<std::size_t>(r)];
  const Piece p = piece(op_.recv.count);
  combine(0, size_, in(begin + p.begin), chunk_ * me_, step, out(p.begin), p.count);
}

void HostTask::read_gather(std::uint64_t step) {
  std::int64_t begin = 0;
  for (Rank r = 0; r < size_; ++r) {
    const std::int64_t count = op_.counts[static_cast<std::size_t>(r)];
    const Piece p = piece(count);
    if (r != me_) copy_bytes(out(begin + p.begin), place(r, step), bytes(p.count));
    begin += count;
  }
}

// An area for each member: the number of all bytes that it gets, then its chunk, or the address of its part.
void HostTask::write_all_to_all(std::uint64_t step) {
  HostSlot& mine = *host_.members_[static_cast<std::size_t>(me_)].words;
  if (at_ == 0) std::memcpy(mine.step[step % 2].payload, &steps_, sizeof steps_);
  std::int64_t begin = 0;
  for (Rank r = 0; r < size_; ++r) {
    const std::int64_t count = op_.counts[static_cast<std::size_t>(r)];
    const Piece p = piece(count);
    if (r != me_) {
      std::byte* const area = place(me_, step) + host_.area_bytes() * static_cast<std::size_t>(r);
      const std::uint64_t all = bytes(count);
      std::memcpy(area, &all, sizeof all);
      const std::uint64_t part = address_of(in(begin));
      if (is_lent(count))
        copy_bytes(area + sizeof all, &part, sizeof part);
      else
        copy_bytes(area + sizeof all, in(begin + p.begin), bytes(p.count));
    }
    begin += count;
  }
}

void HostTask::read_all_to_all(std::uint64_t step) {
  std::int64_t begin = 0;
  for (Rank r = 0; r < size_; ++r) {
    const std::int64_t count = op_.recv_counts[static_cast<std::size_t>(r)];
    const Piece p = piece(count);
    if (r != me_) {
      const std::byte* const area = place(r, step) + host_.area_bytes() * static_cast<std::size_t>(me_);
      std::uint64_t all = 0;
      std::memcpy(&all, area, sizeof all);
      if (all != bytes(count))
        fail(ErrorCode::invalid_argument,
             fmt::format("all_to_all on rank {} expects {} bytes of rank {}, which sent {}", me_,
                         bytes(count), r, all));
      std::uint64_t part = 0;
      std::memcpy(&part, area + sizeof all, sizeof part);
      if (!is_lent(count))
        copy_bytes(out(begin + p.begin), area + sizeof all, bytes(p.count));
      else if (at_ == 0)
        read_from(r, begin, part, count);
      if (at_ == 0) {
        std::int64_t steps = 0;
        const HostSlot& slot = *host_.members_[static_cast<std::size_t>(r)].words;
        std::memcpy(&steps, slot.step[step % 2].payload, sizeof steps);
        steps_ = std::max(steps_, steps);
      }
    }
    begin += count;
  }
}

void HostTask::combine(Rank begin, Rank end, const void* own, std::int64_t at, std::uint64_t step, void* to,
                       std::int64_t count) {
  if (count == 0) return;
  std::vector<const void*>& inputs = host_.inputs_;
  for (Rank r = begin; r < end; ++r)
    inputs[static_cast<std::size_t>(r)] = r == me_ ? own : place(r, step) + bytes(at);
  comm::combine(
      op_.send.dtype, op_.reduction,
      std::span(inputs).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)), to,
      count);
}

std::byte* HostTask::place(Rank member, std::uint64_t step) const {
  const HostArena::Member& its = host_.members_[static_cast<std::size_t>(member)];
  return inline_ ? its.words->step[step % 2].payload : its.data + (step % 2) * host_.half_bytes_;
}

// This round's of `count` elements.
HostTask::Piece HostTask::piece(std::int64_t count) const {
  const std::int64_t begin = std::min(round() * chunk_, count);
  return {begin, std::min(chunk_, count - begin)};
}

// Parts begin on cache lines where the elements allow.
HostTask::Piece HostTask::part_of(std::int64_t count, Rank member) const {
  const auto line =
      static_cast<std::int64_t>(tuning::cache_line % element_ == 0 ? tuning::cache_line / element_ : 1);
  const std::int64_t most = divide_up(divide_up(count, size_), line) * line;
  const std::int64_t begin = std::min(most * member, count);
  return {begin, std::min(most, count - begin)};
}

}  // namespace shoal::comm
