// SPDX-License-Identifier: Apache-2.0
// Collective algorithms over exchanges of messages. They are the same on every transport, and sums
// run in rank order, so all transports give the same bits.
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "comm/messenger.h"
#include "comm/reduce.h"
#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

std::byte* at(void* base, std::size_t offset) { return static_cast<std::byte*>(base) + offset; }

// Dissemination (Hensgen, Finkel, Manber 1988): ceil(log2 n) rounds of empty messages.
void barrier(Messenger& messenger, const Group& group) {
  const int n = group.size();
  for (int distance = 1; distance < n; distance *= 2) {
    const OutgoingPart out{(group.rank + distance) % n, nullptr, 0};
    const IncomingPart in{(group.rank - distance + n) % n, nullptr, 0};
    messenger.exchange(group, collective_tag, {&out, 1}, {&in, 1});
  }
}

// Binomial tree over ranks relative to the root.
void broadcast(Messenger& messenger, const Group& group, Rank root, void* data, std::size_t bytes) {
  const int n = group.size();
  const int me = (group.rank - root + n) % n;
  int reach = 1;
  for (; reach < n; reach *= 2) {
    if (me < reach || me >= 2 * reach) continue;
    const IncomingPart in{(me - reach + root) % n, data, bytes};
    messenger.exchange(group, collective_tag, {}, {&in, 1});
    break;
  }
  int first = 1;
  while (first <= me) first *= 2;
  std::vector<OutgoingPart> out;
  for (int step = first; step < n; step *= 2)
    if (me + step < n) out.push_back({(me + step + root) % n, data, bytes});
  if (!out.empty()) messenger.exchange(group, collective_tag, out, {});
}

// Everybody sends its part to everybody.
void all_gather(Messenger& messenger, const Group& group, const void* mine, void* out,
                std::span<const std::size_t> part_bytes) {
  std::vector<OutgoingPart> sends;
  std::vector<IncomingPart> receives;
  std::size_t offset = 0;
  for (Rank r = 0; r < group.size(); ++r) {
    const std::size_t bytes = part_bytes[static_cast<std::size_t>(r)];
    if (r == group.rank) {
      if (bytes > 0 && at(out, offset) != mine) std::memmove(at(out, offset), mine, bytes);
    } else {
      sends.push_back({r, mine, part_bytes[static_cast<std::size_t>(group.rank)]});
      receives.push_back({r, at(out, offset), bytes});
    }
    offset += bytes;
  }
  messenger.exchange(group, collective_tag, sends, receives);
}

// Rank r combines the r-th slice of all ranks, in rank order; then the slices are gathered. Each rank
// sends and receives 2 (n-1)/n of the data, the least there is for large ones.
void all_reduce(Messenger& messenger, const Group& group, const Operation& operation) {
  const int n = group.size();
  const std::size_t element = size_of(operation.send.dtype);
  const std::int64_t count = operation.send.count;
  const auto slice_begin = [&](Rank r) { return count * r / n; };

  const std::int64_t begin = slice_begin(group.rank);
  const std::int64_t length = slice_begin(group.rank + 1) - begin;
  const std::size_t slice_bytes = static_cast<std::size_t>(length) * element;
  std::vector<std::byte> contributions(slice_bytes * static_cast<std::size_t>(n));
  std::vector<OutgoingPart> sends;
  std::vector<IncomingPart> receives;
  std::vector<const void*> inputs;
  std::vector<std::size_t> part_bytes;
  for (Rank r = 0; r < n; ++r) {
    const std::size_t offset = static_cast<std::size_t>(slice_begin(r)) * element;
    part_bytes.push_back(static_cast<std::size_t>(slice_begin(r + 1) - slice_begin(r)) * element);
    void* const place = contributions.data() + slice_bytes * static_cast<std::size_t>(r);
    if (r == group.rank) {
      inputs.push_back(at(operation.send.data, offset));
    } else {
      sends.push_back({r, at(operation.send.data, offset), part_bytes.back()});
      receives.push_back({r, place, slice_bytes});
      inputs.push_back(place);
    }
  }
  messenger.exchange(group, collective_tag, sends, receives);
  std::byte* const mine = at(operation.recv.data, static_cast<std::size_t>(begin) * element);
  combine(operation.send.dtype, operation.reduction, inputs, mine, length);
  all_gather(messenger, group, mine, operation.recv.data, part_bytes);
}

}  // namespace

void run_by_messages(Messenger& messenger, const Group& group, const Operation& operation) {
  const Buffer& send = operation.send;
  const Buffer& recv = operation.recv;
  switch (operation.pattern) {
    case Pattern::barrier: return barrier(messenger, group);
    case Pattern::broadcast: return broadcast(messenger, group, operation.peer, recv.data, recv.bytes());
    case Pattern::all_reduce: return all_reduce(messenger, group, operation);
    case Pattern::all_gather: {
      std::vector<std::size_t> part_bytes;
      for (const std::int64_t count : operation.counts)
        part_bytes.push_back(static_cast<std::size_t>(count) * size_of(send.dtype));
      return all_gather(messenger, group, send.data, recv.data, part_bytes);
    }
    case Pattern::send: {
      const OutgoingPart part{operation.peer, send.data, send.bytes()};
      return messenger.exchange(group, operation.tag, {&part, 1}, {});
    }
    case Pattern::recv: {
      const IncomingPart part{operation.peer, recv.data, recv.bytes()};
      return messenger.exchange(group, operation.tag, {}, {&part, 1});
    }
  }
}

}  // namespace shoal::comm
