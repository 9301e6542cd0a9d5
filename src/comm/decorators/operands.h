// SPDX-License-Identifier: Apache-2.0
// What one rank can see alone about the buffers of an operation: which memory it reads and writes, and
// whether that makes sense. (Roots, peers, tags, counts and types are checked by Communicator always.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shoal/comm/operation.h"

namespace shoal::comm {

struct MemoryRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  bool written = false;

  bool empty() const { return begin == end; }
  bool overlaps(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
  /// Whether both may not be in use at once.
  bool conflicts(const MemoryRange& other) const { return (written || other.written) && overlaps(other); }
};

/// The memory that this rank's part of `operation` touches; ranges of no bytes are left out.
std::vector<MemoryRange> memory_of(const Group& group, const Operation& operation);

/// Whether a glance is enough: two buffers of one type that are there, and far apart or the same where a
/// pattern works in place. No element has more than 16 bytes.
inline bool clearly_sound(const Operation& operation) {
  const Buffer &in = operation.send, &out = operation.recv;
  if (!in.data || !out.data || in.dtype != out.dtype || !operation.sends.empty() ||
      !operation.receives.empty())
    return false;
  if (in.data == out.data)
    return operation.pattern == Pattern::all_reduce || operation.pattern == Pattern::broadcast;
  const std::intptr_t distance =
      reinterpret_cast<std::intptr_t>(out.data) - reinterpret_cast<std::intptr_t>(in.data);
  return distance > 0 ? distance / 16 >= in.count : -distance / 16 >= out.count;
}

void find_operand_mistake(const Group& group, const Operation& operation);

/// Throws invalid_argument for a null pointer with elements, types that differ between the two buffers of
/// gather and scatter, and buffers that overlap where they may not. Takes a time that does not depend on
/// the number of ranks unless buffers overlap.
inline void check_operands(const Group& group, const Operation& operation) {
  if (!clearly_sound(operation)) find_operand_mistake(group, operation);
}

/// The same for the parts of an exchange among each other: n log n for n parts.
void check_parts(const Group& group, const Operation& operation);

/// "5 float64".
std::string describe(const Buffer& buffer);

}  // namespace shoal::comm
