// SPDX-License-Identifier: Apache-2.0
// Copies from one rank's ordinary memory to another's in which both take part: the receiver reads pieces from
// the front (PeerMemory), and the sender, if it happens to wait, writes others from behind. So a copy takes
// half as long, and nothing depends on the sender's help.
//
// A piece is claimed before it is copied, in a word of shared memory that both change by compare and
// exchange. The sender tells how many of its pieces are written. So a receiver that gives up closes the word,
// which ends all claims, and waits for the pieces that have been claimed: when it goes on, nothing can be
// written into its buffer any more. A sender that has ended writes nothing; one that is stopped between claim
// and piece is ended, since the job is over for it and it would write when it is woken.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/peer_memory.h"
#include "comm/tuning.h"

namespace shoal::comm {

/// What both ranks know of a copy; in memory that both can load and store, all zero at first.
struct alignas(tuning::cache_line) CopyLine {
  std::uint64_t state;  // number of the copy, and how many pieces are claimed from behind and from the front
  std::uint64_t address;  // of the receiver's buffer
  std::uint64_t bytes;    // of it
  std::uint64_t written;  // pieces, by the sender; or copy_failed
};

/// A copy as both sides see it.
struct CopyShape {
  std::uint64_t number;  // larger than those of earlier copies on the same line
  std::size_t bytes;
  std::size_t least_piece = tuning::shared_piece_bytes;

  std::size_t piece() const;  // bytes of all but the last one
  std::uint64_t pieces() const;
};

/// The receiver's side.
class SharedReading {
 public:
  /// Opens the copy from `address` of `sender`, a rank of the world. All of them outlive this.
  SharedReading(const PeerMemory& memory, Rank sender, CopyLine& line, const CopyShape& shape, void* to,
                std::uint64_t address);
  /// Gives up what is not done.
  ~SharedReading();
  SharedReading(const SharedReading&) = delete;
  SharedReading& operator=(const SharedReading&) = delete;

  /// Copies what nobody has claimed; true when all is there. Throws communication where the sender cannot be
  /// read, has ended, or cannot write.
  bool advance();

 private:
  void read(std::uint64_t piece);

  const PeerMemory& memory_;
  const Rank sender_;
  CopyLine& line_;
  const CopyShape shape_;
  std::byte* const to_;
  const std::uint64_t address_;
  bool opened_ = false;
  bool done_ = false;
  int looks_ = 0;  // in vain
};

/// The sender's side: writes a piece of the copy if there is one left, and says whether there was. Does
/// nothing where the receiver expects another length.
bool help_copy(const PeerMemory& memory, Rank receiver, CopyLine& line, const CopyShape& shape,
               const void* from);

}  // namespace shoal::comm
