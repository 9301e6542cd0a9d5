// SPDX-License-Identifier: Apache-2.0
#include "comm/schedule.h"

#include <cstring>
#include <numeric>

#include "comm/reduce.h"
#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

std::byte* at(void* base, std::size_t offset) { return static_cast<std::byte*>(base) + offset; }
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

// Where each rank's part lies in a buffer of parts.
struct Parts {
  Parts(std::span<const std::int64_t> counts, std::size_t element_bytes) {
    std::size_t offset = 0;
    for (const std::int64_t count : counts) {
      begin.push_back(offset);
      bytes.push_back(static_cast<std::size_t>(count) * element_bytes);
      offset += bytes.back();
    }
    total = offset;
  }
  std::vector<std::size_t> begin, bytes;
  std::size_t total = 0;
};

// count elements in n slices whose lengths differ by at most one.
std::vector<std::int64_t> even_counts(std::int64_t count, int n) {
  std::vector<std::int64_t> counts;
  for (int r = 0; r < n; ++r) counts.push_back(count * (r + 1) / n - count * r / n);
  return counts;
}

class Builder {
 public:
  Builder(const Group& group, const Operation& operation) : group_(group), op_(operation) {}

  Schedule build() {
    switch (op_.pattern) {
      case Pattern::barrier: barrier(); break;
      case Pattern::broadcast: broadcast(); break;
      case Pattern::reduce: reduce(); break;
      case Pattern::all_reduce: all_reduce(); break;
      case Pattern::reduce_scatter: reduce_scatter(op_.counts, op_.recv.data); break;
      case Pattern::gather: gather(op_.send.data, op_.recv.data, op_.counts); break;
      case Pattern::all_gather: all_gather(op_.send.data, op_.recv.data, op_.counts); break;
      case Pattern::scatter: scatter(); break;
      case Pattern::all_to_all: all_to_all(); break;
      case Pattern::scan: scan(true); break;
      case Pattern::exclusive_scan: scan(false); break;
      case Pattern::exchange: exchange(); break;
      case Pattern::send: send(); break;
      case Pattern::recv: recv(); break;
    }
    return std::move(schedule_);
  }

 private:
  int size() const { return group_.size(); }
  Rank me() const { return group_.rank; }
  std::size_t element() const { return size_of(op_.send.dtype); }
  Round& round() { return schedule_.rounds.emplace_back(); }
  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

  // Dissemination (Hensgen, Finkel, Manber 1988): ceil(log2 n) rounds of empty messages.
  void barrier() {
    for (int distance = 1; distance < size(); distance *= 2) {
      Round& r = round();
      r.sends = {{(me() + distance) % size(), nullptr, 0}};
      r.receives = {{(me() - distance + size()) % size(), nullptr, 0}};
    }
  }

  // Binomial tree over ranks relative to the root.
  void broadcast() {
    const Rank root = op_.peer;
    void* const data = op_.recv.data;
    const std::size_t bytes = op_.recv.bytes();
    const int mine = (me() - root + size()) % size();
    int reach = 1;
    while (2 * reach <= mine) reach *= 2;
    if (mine > 0) round().receives = {{(mine - reach + root) % size(), data, bytes}};
    Round& down = round();
    for (int step = mine > 0 ? 2 * reach : 1; step < size(); step *= 2)
      if (mine + step < size()) down.sends.push_back({(mine + step + root) % size(), data, bytes});
  }

  // Rank r gets everybody's r-th part and combines them in rank order into `out`.
  void reduce_scatter(std::span<const std::int64_t> counts, void* out) {
    const Parts parts(counts, element());
    const std::size_t mine = parts.bytes[index(me())];
    schedule_.scratch.resize(mine * index(size()));
    std::vector<const void*> inputs;
    Round& r = round();
    for (Rank peer = 0; peer < size(); ++peer) {
      const std::byte* part = at(op_.send.data, parts.begin[index(peer)]);
      std::byte* const place = schedule_.scratch.data() + mine * index(peer);
      if (peer == me()) {
        inputs.push_back(part);
        continue;
      }
      r.sends.push_back({peer, part, parts.bytes[index(peer)]});
      r.receives.push_back({peer, place, mine});
      inputs.push_back(place);
    }
    r.then = [inputs, out, dtype = op_.send.dtype, reduction = op_.reduction, count = counts[index(me())]] {
      combine(dtype, reduction, inputs, out, count);
    };
  }

  // Each rank sends and receives 2 (n-1)/n of the data, the least there is for large ones.
  void all_reduce() {
    const std::vector<std::int64_t> counts = even_counts(op_.send.count, size());
    std::byte* const mine = at(op_.recv.data, Parts(counts, element()).begin[index(me())]);
    reduce_scatter(counts, mine);
    all_gather(mine, op_.recv.data, counts);
  }

  void reduce() {
    const std::vector<std::int64_t> counts = even_counts(op_.send.count, size());
    const Parts parts(counts, element());
    if (me() == op_.peer) {
      std::byte* const mine = at(op_.recv.data, parts.begin[index(me())]);
      reduce_scatter(counts, mine);
      gather(mine, op_.recv.data, counts);
    } else {
      result_.resize(parts.bytes[index(me())]);
      reduce_scatter(counts, result_.data());
      gather(result_.data(), nullptr, counts);
      schedule_.rounds.back().then = [keep = std::move(result_)] {};
    }
  }

  void all_gather(const void* mine, void* out, std::span<const std::int64_t> counts) {
    const Parts parts(counts, element());
    Round& r = round();
    for (Rank peer = 0; peer < size(); ++peer) {
      std::byte* const place = at(out, parts.begin[index(peer)]);
      if (peer == me()) continue;
      r.sends.push_back({peer, mine, parts.bytes[index(me())]});
      r.receives.push_back({peer, place, parts.bytes[index(peer)]});
    }
    r.then = [to = at(out, parts.begin[index(me())]), mine, bytes = parts.bytes[index(me())]] {
      copy_bytes(to, mine, bytes);
    };
  }

  void gather(const void* mine, void* out, std::span<const std::int64_t> counts) {
    const Parts parts(counts, element());
    const Rank root = op_.peer;
    Round& r = round();
    if (me() != root) {
      r.sends = {{root, mine, parts.bytes[index(me())]}};
      return;
    }
    for (Rank peer = 0; peer < size(); ++peer)
      if (peer != root)
        r.receives.push_back({peer, at(out, parts.begin[index(peer)]), parts.bytes[index(peer)]});
    r.then = [to = at(out, parts.begin[index(root)]), mine, bytes = parts.bytes[index(root)]] {
      copy_bytes(to, mine, bytes);
    };
  }

  void scatter() {
    const Parts parts(op_.counts, size_of(op_.recv.dtype));
    const Rank root = op_.peer;
    Round& r = round();
    if (me() != root) {
      r.receives = {{root, op_.recv.data, parts.bytes[index(me())]}};
      return;
    }
    for (Rank peer = 0; peer < size(); ++peer)
      if (peer != root)
        r.sends.push_back({peer, at(op_.send.data, parts.begin[index(peer)]), parts.bytes[index(peer)]});
    r.then = [to = op_.recv.data, from = at(op_.send.data, parts.begin[index(root)]),
              bytes = parts.bytes[index(root)]] { copy_bytes(to, from, bytes); };
  }

  void all_to_all() {
    const Parts out(op_.counts, element());
    const Parts in(op_.recv_counts, element());
    Round& r = round();
    for (Rank peer = 0; peer < size(); ++peer) {
      if (peer == me()) continue;
      r.sends.push_back({peer, at(op_.send.data, out.begin[index(peer)]), out.bytes[index(peer)]});
      r.receives.push_back({peer, at(op_.recv.data, in.begin[index(peer)]), in.bytes[index(peer)]});
    }
    r.then = [to = at(op_.recv.data, in.begin[index(me())]), from = at(op_.send.data, out.begin[index(me())]),
              bytes = out.bytes[index(me())]] { copy_bytes(to, from, bytes); };
  }

  // Every rank sends to all above it and combines what comes from below, in rank order: half precision is
  // rounded once, and the bits are those of a loop over the ranks.
  void scan(bool inclusive) {
    const std::size_t bytes = op_.send.bytes();
    schedule_.scratch.resize(bytes * index(me()));
    std::vector<const void*> inputs;
    Round& r = round();
    for (Rank peer = me() + 1; peer < size(); ++peer) r.sends.push_back({peer, op_.send.data, bytes});
    for (Rank peer = 0; peer < me(); ++peer) {
      std::byte* const place = schedule_.scratch.data() + bytes * index(peer);
      r.receives.push_back({peer, place, bytes});
      inputs.push_back(place);
    }
    if (inclusive) inputs.push_back(op_.send.data);
    r.then = [inputs, out = op_.recv, reduction = op_.reduction] {
      if (inputs.empty())
        fill_identity(out.dtype, reduction, out.data, out.count);
      else
        combine(out.dtype, reduction, inputs, out.data, out.count);
    };
  }

  // Parts for this rank itself are matched in order and copied.
  void exchange() {
    schedule_.tag = op_.tag;
    schedule_.collective = false;
    Round& r = round();
    std::vector<Buffer> own_sends, own_receives;
    for (const Part& part : op_.sends) {
      if (part.peer == me())
        own_sends.push_back(part.buffer);
      else
        r.sends.push_back({part.peer, part.buffer.data, part.buffer.bytes()});
    }
    for (const Part& part : op_.receives) {
      if (part.peer == me())
        own_receives.push_back(part.buffer);
      else
        r.receives.push_back({part.peer, part.buffer.data, part.buffer.bytes()});
    }
    bool equal = own_sends.size() == own_receives.size();
    for (std::size_t i = 0; equal && i < own_sends.size(); ++i)
      equal = own_sends[i].bytes() == own_receives[i].bytes();
    if (!equal)
      fail(ErrorCode::invalid_argument,
           "exchange: what this rank sends to itself is not what it receives from itself");
    for (std::size_t i = 0; i < own_sends.size(); ++i)
      copy_bytes(own_receives[i].data, own_sends[i].data, own_sends[i].bytes());
  }

  void send() {
    schedule_.tag = op_.tag;
    schedule_.collective = false;
    round().sends = {{op_.peer, op_.send.data, op_.send.bytes()}};
  }

  void recv() {
    schedule_.tag = op_.tag;
    schedule_.collective = false;
    round().receives = {{op_.peer, op_.recv.data, op_.recv.bytes()}};
  }

  const Group& group_;
  const Operation& op_;
  Schedule schedule_;
  std::vector<std::byte> result_;
};

}  // namespace

Schedule make_schedule(const Group& group, const Operation& operation) {
  return Builder(group, operation).build();
}

}  // namespace shoal::comm
