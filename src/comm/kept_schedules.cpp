// SPDX-License-Identifier: Apache-2.0
#include "comm/kept_schedules.h"

#include <algorithm>

namespace shoal::comm {
namespace {

constexpr std::size_t most_kept_bytes = std::size_t{64} << 10;  // of memory that a schedule holds

bool same(const Buffer& a, const Buffer& b) {
  return a.data == b.data && a.count == b.count && a.dtype == b.dtype && a.space == b.space;
}

}  // namespace

bool KeptSchedules::same(const Entry& entry, const Operation& operation) {
  const Operation& kept = entry.operation;
  return entry.schedule && kept.pattern == operation.pattern && kept.peer == operation.peer &&
         kept.reduction == operation.reduction && comm::same(kept.send, operation.send) &&
         comm::same(kept.recv, operation.recv) && std::ranges::equal(entry.counts, operation.counts) &&
         std::ranges::equal(entry.recv_counts, operation.recv_counts);
}

std::shared_ptr<const Schedule> KeptSchedules::find(const Operation& collective) const {
  for (const Entry& entry : entries_)
    if (same(entry, collective)) return entry.schedule.use_count() == 1 ? entry.schedule : nullptr;
  return nullptr;
}

void KeptSchedules::keep(const Operation& collective, std::shared_ptr<const Schedule> schedule) {
  if (schedule->once || schedule->reserved > most_kept_bytes) return;
  for (const Entry& entry : entries_)
    if (same(entry, collective)) return;  // under way, and kept already
  entries_[oldest_] = {collective,
                       {collective.counts.begin(), collective.counts.end()},
                       {collective.recv_counts.begin(), collective.recv_counts.end()},
                       std::move(schedule)};
  entries_[oldest_].operation.counts = entries_[oldest_].operation.recv_counts = {};
  oldest_ = (oldest_ + 1) % entries_.size();
}

}  // namespace shoal::comm
