// SPDX-License-Identifier: Apache-2.0
#include "comm/decorators/operands.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "comm/decorators/call.h"
#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

MemoryRange range_of(const Buffer& buffer, bool written) {
  const auto* begin = static_cast<const std::byte*>(buffer.data);
  return {begin, begin + buffer.bytes(), written};
}

// Which of the two buffers this rank uses.
struct Uses {
  bool send = false;
  bool recv = false;
};

Uses uses_of(const Group& group, const Operation& operation) {
  const bool root = operation.peer == group.rank;
  switch (operation.pattern) {
    case Pattern::barrier:
    case Pattern::exchange: return {false, false};
    case Pattern::broadcast:
    case Pattern::recv: return {false, true};
    case Pattern::send: return {true, false};
    case Pattern::reduce:
    case Pattern::gather: return {true, root};
    case Pattern::scatter: return {root, true};
    default: return {true, true};
  }
}

class OperandCheck {
 public:
  OperandCheck(const Group& group, const Operation& operation) : group_(group), op_(operation) {}

  void check() const {
    const Uses uses = uses_of(group_, op_);
    if (uses.send) buffer(op_.send, "send");
    if (uses.recv) buffer(op_.recv, "recv");
    for (const Part& part : op_.sends) buffer(part.buffer, "send");
    for (const Part& part : op_.receives) buffer(part.buffer, "recv");
    if (!uses.send || !uses.recv) return;
    if (op_.send.dtype != op_.recv.dtype)
      misuse(fmt::format("{} in, {} out", to_string(op_.send.dtype), to_string(op_.recv.dtype)));
    const MemoryRange in = range_of(op_.send, false), out = range_of(op_.recv, true);
    if (!in.empty() && !out.empty() && in.conflicts(out)) overlap();
  }

 private:
  [[noreturn]] void misuse(const std::string& what) const {
    fail(ErrorCode::invalid_argument,
         fmt::format("{} on rank {}: {}", to_string(op_.pattern), group_.rank, what));
  }

  void buffer(const Buffer& buffer, const char* name) const {
    if (!buffer.data && buffer.count > 0)
      misuse(fmt::format("the {} buffer is a null pointer, but has {}", name, describe(buffer)));
  }

  // The two buffers share memory: right only where the pattern says that it works in place.
  void overlap() const {
    switch (op_.pattern) {
      case Pattern::reduce:
      case Pattern::all_reduce:
      case Pattern::scan:
      case Pattern::exclusive_scan:
        if (op_.send.data != op_.recv.data)
          misuse("in and out overlap: they may be the same memory, or apart");
        return;
      case Pattern::gather:
      case Pattern::all_gather: return in_place(op_.send, op_.recv, "in", "out");
      case Pattern::scatter: return in_place(op_.recv, op_.send, "out", "in");
      default: misuse("in and out overlap");
    }
  }

  void in_place(const Buffer& part, const Buffer& whole, const char* part_name, const char* name) const {
    const std::int64_t before =
        std::accumulate(op_.counts.begin(), op_.counts.begin() + group_.rank, std::int64_t{0});
    const std::size_t offset = static_cast<std::size_t>(before) * size_of(whole.dtype);
    if (static_cast<const std::byte*>(whole.data) + offset != part.data)
      misuse(fmt::format("{} overlaps {}, but is not its own place there (element {})", part_name, name,
                         before));
  }

  const Group& group_;
  const Operation& op_;
};

}  // namespace

std::string describe(const Buffer& buffer) {
  return fmt::format("{} {}", buffer.count, to_string(buffer.dtype));
}

std::vector<MemoryRange> memory_of(const Group& group, const Operation& operation) {
  const Uses uses = uses_of(group, operation);
  std::vector<MemoryRange> ranges;
  // The root of a broadcast only reads.
  const bool reads = operation.pattern == Pattern::broadcast && operation.peer == group.rank;
  if (uses.send) ranges.push_back(range_of(operation.send, false));
  if (uses.recv) ranges.push_back(range_of(operation.recv, !reads));
  for (const Part& part : operation.sends) ranges.push_back(range_of(part.buffer, false));
  for (const Part& part : operation.receives) ranges.push_back(range_of(part.buffer, true));
  std::erase_if(ranges, [](const MemoryRange& range) { return range.empty(); });
  return ranges;
}

void find_operand_mistake(const Group& group, const Operation& operation) {
  OperandCheck(group, operation).check();
}

void check_parts(const Group& group, const Operation& operation) {
  if (operation.pattern != Pattern::exchange) return;
  std::vector<MemoryRange> ranges = memory_of(group, operation);
  std::sort(ranges.begin(), ranges.end(),
            [](const MemoryRange& a, const MemoryRange& b) { return a.begin < b.begin; });
  // Ends of what has begun so far, and of that the part which is written.
  const std::byte* used = nullptr;
  const std::byte* written = nullptr;
  for (const MemoryRange& range : ranges) {
    if (range.begin < (range.written ? used : written))
      fail(ErrorCode::invalid_argument,
           fmt::format("exchange on rank {}: a receive overlaps another part", group.rank));
    used = std::max(used, range.end);
    if (range.written) written = std::max(written, range.end);
  }
}

}  // namespace shoal::comm
