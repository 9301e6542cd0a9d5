// SPDX-License-Identifier: Apache-2.0
// What a communication library must provide to carry Shoal. A transport is one process's (or, for
// `threads`, one thread's) end of the job. All calls come from the thread that created it.
//
// Goals: a small surface that a library can fill in one sitting; decorators (checking, tracing,
// faults) that implement the same interface; no type parameters.
// Non-goals: being pleasant to call (Communicator is), groups (they are plain data).
// Rejected: one virtual function per collective and type (fifteen times the code for no gain, and a
// decorator could not be written once).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/comm/operation.h"

namespace shoal::comm {

class WaitBoard;

/// One allocation that every member of a group holds with the same size, 64-byte aligned, zeroed.
/// Ranks are those of the group it was allocated for. Destruction is local and never communicates;
/// whoever destroys it knows that no peer still writes to it.
class SymmetricMemory {
 public:
  virtual ~SymmetricMemory() = default;

  virtual std::byte* local() = 0;

  /// The peer's memory where this process can load and store it, else null.
  virtual std::byte* direct(Rank peer) = 0;

  /// Copies `bytes` from `source` to `offset` in the peer's memory. `source` is free on return; the
  /// data is visible to the peer after a later put_signal or flush.
  virtual void put(Rank peer, std::size_t offset, const void* source, std::size_t bytes) = 0;

  /// put(), then sets the aligned 64-bit word at `signal_offset` of the peer to `value`, such that a
  /// peer that sees the value sees the data of this and all earlier puts to it. `bytes` may be 0.
  virtual void put_signal(Rank peer, std::size_t offset, const void* source, std::size_t bytes,
                          std::size_t signal_offset, std::uint64_t value) = 0;

  /// Copies from `offset` in the peer's memory; blocks until the data is here.
  virtual void get(Rank peer, std::size_t offset, void* destination, std::size_t bytes) = 0;

  /// Puts to a peer after it land after those before it. Where that is cheaper than flush(), override it.
  virtual void fence() { flush(); }

  /// Returns when all earlier puts have arrived at their peers.
  virtual void flush() = 0;
};

/// Who takes part in the job.
struct World {
  Rank rank = 0;
  int size = 1;
  std::vector<std::string> host;  // name of each rank's machine
};

/// An operation that has been started. Destroying one that is not done gives it up: only for when the
/// job is ending.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Moves this and all other started operations on, without waiting; true when this one is done.
  virtual bool test() = 0;
  /// Until it is done. Throws Error: communication, timeout, aborted.
  virtual void wait() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;  // "threads", "mpi", "shmem"
  virtual std::string library() const = 0;    // what carries it, with version, for people
  virtual const World& world() const = 0;

  /// Runs `operation` among `group` to its end. Throws Error: communication, timeout, aborted.
  virtual void submit(const Group& group, const Operation& operation) = 0;

  /// Starts `operation` and returns at once. Its buffers are in use until it is done; what its spans of
  /// counts and parts refer to is free on return. Operations of a group are started in the same order
  /// on all its members.
  virtual std::unique_ptr<Pending> start(const Group& group, const Operation& operation) = 0;

  /// Collective over `group`: `bytes` on each member (the same number everywhere). Throws
  /// out_of_memory on every member when one of them has no room, with asked and free sizes.
  virtual std::unique_ptr<SymmetricMemory> allocate(const Group& group, std::size_t bytes) = 0;

  /// Collective over `group`, once before its first use; and locally after its last.
  virtual void open(const Group& group) = 0;
  virtual void close(const Group& group) noexcept = 0;

  /// Lets the library move data (needed between hosts, where a PE that makes no call sees nothing),
  /// and throws `aborted` when the job is ending. Called by everything that waits.
  virtual void progress() = 0;

  /// Where ranks that wait for long tell each other for whom (src/comm/wait_board.h); null: nowhere.
  virtual WaitBoard* wait_board() { return nullptr; }

  /// Collective, last: leaves the job in good order.
  virtual void finalize() = 0;

  /// Ends the whole job with this exit code, at once. The message has been printed already.
  virtual void abort(int exit_code) noexcept = 0;
};

}  // namespace shoal::comm
