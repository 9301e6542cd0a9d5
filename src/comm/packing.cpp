// SPDX-License-Identifier: Apache-2.0
#include "comm/packing.h"

namespace shoal::comm {
namespace {

struct Uses {
  bool reads_send, reads_recv, writes_recv;
};

// What of its buffers an operation uses on this rank.
Uses uses(const Operation& operation, Rank me) {
  const bool root = operation.peer == me;
  switch (operation.pattern) {
    case Pattern::broadcast: return {false, root, !root};
    case Pattern::reduce:
    case Pattern::gather: return {true, false, root};
    case Pattern::scatter: return {root, false, true};
    case Pattern::send: return {true, false, false};
    case Pattern::recv: return {false, false, true};
    default: return {true, false, true};
  }
}

}  // namespace

Packing::Packing(const StridedOperation& call)
    : operation_(call.operation),
      call_(call),
      strided_sends_(call.sends.begin(), call.sends.end()),
      strided_receives_(call.receives.begin(), call.receives.end()) {
  for (const StridedPart& part : strided_sends_) sends_.push_back({part.peer, part.buffer.buffer});
  for (const StridedPart& part : strided_receives_) receives_.push_back({part.peer, part.buffer.buffer});
  operation_.sends = sends_;
  operation_.receives = receives_;
}

void Packing::pack(Rank me) {
  const Uses used = uses(operation_, me);
  if (call_.send) replace(operation_.send, *call_.send, used.reads_send, false);
  if (call_.recv) replace(operation_.recv, *call_.recv, used.reads_recv, used.writes_recv);
  if (operation_.pattern == Pattern::broadcast) operation_.send = operation_.recv;
  for (std::size_t i = 0; i < sends_.size(); ++i)
    replace(sends_[i].buffer, strided_sends_[i].buffer, true, false);
  for (std::size_t i = 0; i < receives_.size(); ++i)
    replace(receives_[i].buffer, strided_receives_[i].buffer, false, true);
}

void Packing::replace(Buffer& buffer, const StridedBuffer& place, bool is_read, bool is_written) {
  if (place.contiguous() || !(is_read || is_written)) return;
  memory_.push_back(std::make_unique_for_overwrite<std::byte[]>(buffer.bytes()));
  std::byte* const packed = memory_.back().get();
  if (is_read) shoal::pack(place, packed);
  if (is_written) results_.emplace_back(packed, place);
  buffer.data = packed;
}

void Packing::unpack() {
  for (const auto& [packed, place] : results_) shoal::unpack(packed, place);
}

}  // namespace shoal::comm
