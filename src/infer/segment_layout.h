// SPDX-License-Identifier: Apache-2.0
// What the PEs of a pipeline put into each other's segments. A segment has two halves, used in turn;
// each holds a header, token ids and hidden states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shoal/infer/tokenizer.h"

namespace shoal::infer {

/// Grows with every change of what PEs say to each other; PEs of different numbers refuse to work together.
inline constexpr std::uint64_t engine_protocol = 1;

enum class MessageKind : std::int32_t {
  chunk,     // token ids and hidden states: run the layers, pass on
  truncate,  // forget positions from `position` on, pass on
  stop,      // pass on and return
  token,     // from the output: the sampled token
};

// At the start of each half of a segment; 64 bytes, so that what follows is aligned.
struct MessageHeader {
  MessageKind kind = MessageKind::chunk;
  std::int32_t tokens = 0;
  std::int64_t position = 0;    // of the first token
  std::int32_t wants_next = 0;  // sample after the last token
  std::int32_t followed = 0;    // another chunk comes at once: acknowledge this one
  std::int32_t drained = 0;     // everything sent before has been taken by all
  std::int32_t begins = 0;      // first of a request: waiting for it was not work
  std::int32_t sampled = -1;    // kind token
  std::int32_t unused[7] = {};
};
static_assert(sizeof(MessageHeader) == 64);

// Where things are within one half of a segment, in bytes.
struct HalfLayout {
  HalfLayout(std::int64_t chunk, std::int64_t width)
      : hidden(sizeof(MessageHeader) + (static_cast<std::size_t>(chunk) * sizeof(Token) + 63) / 64 * 64),
        bytes(hidden + static_cast<std::size_t>(chunk * width) * sizeof(float)) {}
  std::size_t tokens = sizeof(MessageHeader);
  std::size_t hidden;
  std::size_t bytes;
};

/// Symmetric memory of an engine on each of `pes` PEs. A PE has at most two links, each with a segment and
/// two kinds of signals for both ends; since a link has the same place on both, a ring of links may need
/// room for three. And a signal from every PE.
inline std::uint64_t symmetric_bytes(int pes, std::int64_t chunk, std::int64_t width) {
  const std::uint64_t segment = (2 * HalfLayout(chunk, width).bytes + 63) / 64 * 64;
  const std::uint64_t link = 2 * (segment + 2 * 64);
  const std::uint64_t links = pes < 3 ? static_cast<std::uint64_t>(pes - 1) : 3;
  return links * link + static_cast<std::uint64_t>(pes) * 64;
}

inline MessageHeader header_of(const std::byte* half) {
  MessageHeader header;
  std::memcpy(&header, half, sizeof header);
  return header;
}

}  // namespace shoal::infer
