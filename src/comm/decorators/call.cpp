// SPDX-License-Identifier: Apache-2.0
#include "comm/decorators/call.h"

namespace shoal::comm {

std::string_view to_string(Call call) {
  switch (call) {
    case Call::allocate: return "allocate";
    case Call::put: return "put";
    case Call::get: return "get";
    case Call::flush: return "flush";
    case Call::wait: return "wait";
  }
  return to_string(static_cast<Pattern>(call));
}

std::optional<Call> find_call(std::string_view name) {
  for (std::size_t i = 0; i < call_count; ++i)
    if (const auto call = static_cast<Call>(i); name != "unknown" && to_string(call) == name) return call;
  return std::nullopt;
}

const Buffer& main_buffer(const Operation& operation) {
  switch (operation.pattern) {
    case Pattern::broadcast:
    case Pattern::scatter:
    case Pattern::recv: return operation.recv;
    case Pattern::exchange:
      if (!operation.sends.empty()) return operation.sends.front().buffer;
      if (!operation.receives.empty()) return operation.receives.front().buffer;
      return operation.send;
    default: return operation.send;
  }
}

}  // namespace shoal::comm
