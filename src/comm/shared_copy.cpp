// SPDX-License-Identifier: Apache-2.0
#include "comm/shared_copy.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

// The state: the number, 8 bits of pieces claimed from behind, 8 bits of those from the front.
constexpr std::uint64_t from_front = 1, from_behind = 1 << 8, counts_mask = 0xffff;
constexpr std::uint64_t most_pieces = 0xff;
constexpr std::uint64_t copy_failed = ~std::uint64_t{0};  // in place of the pieces written

std::uint64_t front(std::uint64_t state) { return state & 0xff; }
std::uint64_t behind(std::uint64_t state) { return state >> 8 & 0xff; }

std::atomic_ref<std::uint64_t> shared(std::uint64_t& word) { return std::atomic_ref<std::uint64_t>(word); }

// Claims the next piece on one side; `state` becomes what it was before. False when there is none left.
bool claim(CopyLine& line, const CopyShape& shape, std::uint64_t side, std::uint64_t& state) {
  state = shared(line.state).load(std::memory_order_acquire);
  do {
    if (state >> 16 != shape.number || front(state) + behind(state) >= shape.pieces() ||
        shared(line.bytes).load(std::memory_order_relaxed) != shape.bytes)
      return false;
  } while (
      !shared(line.state)
           .compare_exchange_weak(state, state + side, std::memory_order_acq_rel, std::memory_order_acquire));
  return true;
}

std::size_t length(const CopyShape& shape, std::uint64_t piece) {
  const std::size_t begin = piece * shape.piece();
  return std::min(shape.piece(), shape.bytes - begin);
}

}  // namespace

// Some pieces more than two, so that both sides end at about the same time; each costs a system call.
std::size_t CopyShape::piece() const {
  constexpr std::size_t most_piece = std::size_t{256} << 10, line = tuning::cache_line;
  const std::size_t wanted = std::clamp(bytes / 16, least_piece, std::max(least_piece, most_piece));
  const std::size_t least = (bytes + most_pieces - 1) / most_pieces;
  return (std::max(wanted, least) + line - 1) / line * line;
}

std::uint64_t CopyShape::pieces() const { return (bytes + piece() - 1) / piece(); }

SharedReading::SharedReading(const PeerMemory& memory, Rank sender, CopyLine& line, const CopyShape& shape,
                             void* to, std::uint64_t address)
    : memory_(memory),
      sender_(sender),
      line_(line),
      shape_(shape),
      to_(static_cast<std::byte*>(to)),
      address_(address) {
  shared(line_.address).store(address_of(to), std::memory_order_relaxed);
  shared(line_.bytes).store(shape.bytes, std::memory_order_relaxed);
  shared(line_.written).store(0, std::memory_order_relaxed);
  shared(line_.state).store(shape_.number << 16 | from_front, std::memory_order_release);
}

SharedReading::~SharedReading() {
  if (done_) return;
  const std::uint64_t last =
      shared(line_.state).exchange(shape_.number << 16 | counts_mask, std::memory_order_acq_rel);
  memory_.outlast(sender_,
                  [&] { return shared(line_.written).load(std::memory_order_acquire) >= behind(last); });
}

void SharedReading::read(std::uint64_t piece) {
  const std::size_t begin = piece * shape_.piece();
  memory_.read(sender_, to_ + begin, address_ + begin, length(shape_, piece));
}

bool SharedReading::advance() {
  if (done_) return true;
  if (!opened_) {  // with this piece claimed
    opened_ = true;
    read(0);
  }
  std::uint64_t state = 0;
  while (claim(line_, shape_, from_front, state)) read(front(state));
  const std::uint64_t written = shared(line_.written).load(std::memory_order_acquire);
  if (written == copy_failed)
    fail(ErrorCode::communication, fmt::format("PE {} could not write a message to this one", sender_));
  done_ = written == behind(state);
  // One that has ended will never write it.
  if (!done_ && ++looks_ % tuning::patient_looks == 0) memory_.probe(sender_);
  return done_;
}

bool help_copy(const PeerMemory& memory, Rank receiver, CopyLine& line, const CopyShape& shape,
               const void* from) {
  std::uint64_t state = 0;
  if (!claim(line, shape, from_behind, state)) return false;
  const std::uint64_t piece = shape.pieces() - 1 - behind(state);
  const std::size_t begin = piece * shape.piece();
  const auto written = shared(line.written);
  try {
    memory.write(receiver, shared(line.address).load(std::memory_order_relaxed) + begin,
                 static_cast<const std::byte*>(from) + begin, length(shape, piece));
  } catch (const Error&) {
    written.store(copy_failed, std::memory_order_release);
    throw;
  }
  written.store(behind(state) + 1, std::memory_order_release);
  return true;
}

}  // namespace shoal::comm
