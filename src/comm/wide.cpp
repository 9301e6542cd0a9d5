// SPDX-License-Identifier: Apache-2.0
#include "comm/wide.h"

#include <algorithm>

namespace shoal::comm {
namespace {

template <class Half>
void widen(const void* from, void* to, std::int64_t count) {
  std::transform(static_cast<const Half*>(from), static_cast<const Half*>(from) + count,
                 static_cast<float*>(to), [](Half x) { return static_cast<float>(x); });
}
template <class Half>
void narrow(const void* from, void* to, std::int64_t count) {
  std::transform(static_cast<const float*>(from), static_cast<const float*>(from) + count,
                 static_cast<Half*>(to), [](float x) { return static_cast<Half>(x); });
}

}  // namespace

bool needs_widening(const Operation& reduction) {
  const DType dtype = reduction.send.dtype;
  return (dtype == DType::float16 || dtype == DType::bfloat16) &&
         (reduction.reduction == Reduction::sum || reduction.reduction == Reduction::product);
}

void widened(Schedule& schedule, Rank rank, const Operation& reduction,
             const std::function<void(const Operation&)>& build) {
  const bool is_float16 = reduction.send.dtype == DType::float16;
  const auto wide = [&](const Buffer& buffer) {
    std::byte* const memory = schedule.reserve(static_cast<std::size_t>(buffer.count) * sizeof(float));
    return Buffer{memory, buffer.count, DType::float32};
  };
  Operation operation = reduction;
  operation.send = wide(reduction.send);
  schedule.add().then = [from = reduction.send, to = operation.send, is_float16] {
    (is_float16 ? widen<float16> : widen<bfloat16>)(from.data, to.data, from.count);
  };
  const bool has_result = reduction.pattern != Pattern::reduce || reduction.peer == rank;
  if (has_result) operation.recv = wide(reduction.recv);
  build(operation);
  if (!has_result) return;
  schedule.add().then = [from = operation.recv, to = reduction.recv, is_float16] {
    (is_float16 ? narrow<float16> : narrow<bfloat16>)(from.data, to.data, to.count);
  };
}

}  // namespace shoal::comm
