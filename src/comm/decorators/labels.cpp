// SPDX-License-Identifier: Apache-2.0
#include "comm/decorators/labels.h"

#include <fmt/format.h>

#include "comm/decorators/agreement.h"

namespace shoal::comm {
namespace {

constexpr std::int64_t words = 3;  // in a label

}  // namespace

MessageLabels::MessageLabels(Transport& transport, const Group& companion, const Operation& operation)
    : pattern_(operation.pattern), tag_(operation.tag) {
  std::vector<Part> sends(operation.sends.begin(), operation.sends.end());
  std::vector<Part> receives(operation.receives.begin(), operation.receives.end());
  if (operation.pattern == Pattern::send) sends = {{operation.peer, operation.send}};
  if (operation.pattern == Pattern::recv) receives = {{operation.peer, operation.recv}};
  const auto label_of = [](const Buffer& buffer) {
    return Label{1, buffer.count, static_cast<std::int64_t>(buffer.dtype)};
  };
  // All labels first: the messages point to them.
  for (const Part& part : sends) outgoing_.push_back(label_of(part.buffer));
  for (const Part& part : receives) expected_.push_back({part.peer, label_of(part.buffer)});
  incoming_.resize(receives.size());
  for (std::size_t i = 0; i < sends.size(); ++i) sends[i].buffer = {&outgoing_[i], words, DType::int64};
  for (std::size_t i = 0; i < receives.size(); ++i) receives[i].buffer = {&incoming_[i], words, DType::int64};
  pending_ = transport.start(
      companion, {.pattern = Pattern::exchange, .tag = tag_, .sends = sends, .receives = receives});
}

std::string MessageLabels::mismatch(const World& world, const Group& group) const {
  for (std::size_t i = 0; i < incoming_.size(); ++i) {
    const Label& sent = incoming_[i];
    const auto& [from, wanted] = expected_[i];
    if (sent.arrived == 0 || (sent.count == wanted.count && sent.dtype == wanted.dtype)) continue;
    return fmt::format("{} on {}: {} {}, but {} sends {} {} (tag {})", to_string(pattern_),
                       name_of(world, group, group.rank), wanted.count,
                       to_string(static_cast<DType>(wanted.dtype)), name_of(world, group, from), sent.count,
                       to_string(static_cast<DType>(sent.dtype)), tag_);
  }
  return "";
}

}  // namespace shoal::comm
