// SPDX-License-Identifier: Apache-2.0
// The collectives and messages of the library that carries a transport, as its own users call them: what
// `shoal bench comm` measures Shoal against. Programs have no use for it.
//
// Goals: the library at its best (its regular call where all counts are equal, its work arrays and
// conversions outside the time), so that a ratio means something.
// Non-goals: all types and reductions. Only sums of float32 are offered.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shoal/comm/communicator.h"
#include "shoal/comm/operation.h"

namespace shoal::comm {

class LibraryCalls {
 public:
  virtual ~LibraryCalls() = default;

  virtual std::string name() const = 0;  // of the interface, for people: "MPI", "OpenSHMEM"

  /// Where operands have to lie.
  struct Operands {
    std::byte* send = nullptr;
    std::byte* recv = nullptr;
  };
  /// Null: anywhere. Else `send` buffers begin at the one and `recv` buffers at the other.
  virtual Operands operands() = 0;

  /// The library's call for `operation` among all ranks of the job, ready to be made any number of
  /// times while this object lives; all ranks prepare and call the same operations in the same order. Empty
  /// where the library has no such call. Of several messages between a pair only one may be under way.
  virtual std::function<void()> prepare(const Operation& operation) = 0;
};

/// Collective over `world`, the communicator of the whole job. One for each interface of the library that
/// carries it; none for `threads`. `operand_bytes` is the size of the largest buffer. To be destroyed
/// before the job ends.
std::vector<std::unique_ptr<LibraryCalls>> library_calls(Communicator& world, std::size_t operand_bytes);

/// Symmetric memory that library_calls takes on each PE (for JobOptions::symmetric_bytes).
std::size_t library_calls_footprint(int ranks, std::size_t operand_bytes);

}  // namespace shoal::comm
