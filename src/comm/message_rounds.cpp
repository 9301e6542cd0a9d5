// SPDX-License-Identifier: Apache-2.0
#include "comm/message_rounds.h"

#include <algorithm>

#include "comm/reduce.h"

namespace shoal::comm {
namespace {

// Measured over TCP between two and three hosts.
constexpr std::size_t one_shot_bytes = std::size_t{32} << 10;   // above: in slices, one a rank
constexpr std::size_t many_small_bytes = std::size_t{8} << 10;  // below: as few messages as there can be
constexpr std::size_t window_bytes = std::size_t{64} << 10;     // larger parts: to a few ranks at a time

}  // namespace

std::byte* Schedule::reserve(std::size_t bytes) {
  reserved += bytes;
  scratch.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
  return scratch.back().get();
}

// Dissemination (Hensgen, Finkel, Manber 1988): ceil(log2 n) rounds of empty messages.
void MessageRounds::barrier() {
  for (int distance = 1; distance < size(); distance *= 2) {
    Round& round = schedule_.add();
    round.sends = {{circle_.at(place(me() + distance)), nullptr, 0}};
    round.receives = {{circle_.at(place(me() - distance)), nullptr, 0}};
  }
}

void MessageRounds::broadcast(int root, void* data, std::size_t bytes) {
  if (size() > few_ranks && bytes > window_bytes) return scatter_and_gather(root, data, bytes);
  // Binomial tree over places relative to the root.
  const int mine = place(me() - root);
  int reach = 1;
  while (2 * reach <= mine) reach *= 2;
  if (mine > 0) schedule_.add().receives = {{circle_.at(place(mine - reach + root)), data, bytes}};
  Round& down = schedule_.add();
  for (int step = mine > 0 ? 2 * reach : 1; step < size(); step *= 2)
    if (mine + step < size()) down.sends.push_back({circle_.at(place(mine + step + root)), data, bytes});
}

// The root sends 2 (n-1)/n of the data instead of log2 n times all of it.
void MessageRounds::scatter_and_gather(int root, void* data, std::size_t bytes) {
  const Parts parts(even_counts(static_cast<std::int64_t>(bytes), size()), 1);
  Round& round = schedule_.add();
  std::byte* const mine = at(data, parts.begin[index(me())]);
  if (me() != root) round.receives = {{circle_.at(root), mine, parts.bytes[index(me())]}};
  for (int p = 0; me() == root && p < size(); ++p)
    if (p != root)
      round.sends.push_back({circle_.at(p), at(data, parts.begin[index(p)]), parts.bytes[index(p)]});
  all_gather(mine, data, parts);
  schedule_.add();
}

void MessageRounds::reduce(int root, const Combination& what) {
  const bool direct = size() <= 2 || (what.bytes() <= one_shot_bytes && (rank_order_ || size() <= few_ranks));
  if (!direct && !rank_order_ && what.bytes() <= one_shot_bytes) return binomial_reduce(root, what);
  if (direct) {
    Round& round = schedule_.add();
    if (me() != root) {
      round.sends = {{circle_.at(root), what.in, what.bytes()}};
      return;
    }
    std::vector<const void*> inputs;
    for (int p = 0; p < size(); ++p) {
      inputs.push_back(p == root ? what.in : schedule_.reserve(what.bytes()));
      if (p != root)
        round.receives.push_back({circle_.at(p), const_cast<void*>(inputs.back()), what.bytes()});
    }
    round.then = [inputs, what] { combine(what.dtype, what.reduction, inputs, what.out, what.count); };
    return;
  }
  const std::vector<std::int64_t> counts = even_counts(what.count, size());
  const Parts parts(counts, size_of(what.dtype));
  const std::size_t mine = parts.bytes[index(me())];
  Combination slice = what;
  slice.out = me() == root ? at(what.out, parts.begin[index(me())]) : schedule_.reserve(mine);
  reduce_scatter(slice, counts);
  Round& round = schedule_.add();
  if (me() != root) round.sends = {{circle_.at(root), slice.out, mine}};
  for (int p = 0; me() == root && p < size(); ++p)
    if (p != root)
      round.receives.push_back({circle_.at(p), at(what.out, parts.begin[index(p)]), parts.bytes[index(p)]});
}

// Each rank waits for all its children at once and combines them in order.
void MessageRounds::binomial_reduce(int root, const Combination& what) {
  const int mine = place(me() - root);
  std::vector<const void*> inputs = {what.in};
  Round& up = schedule_.add();
  int step = 1;
  for (; step < size() && (mine & step) == 0; step *= 2) {
    if (mine + step >= size()) continue;
    std::byte* const child = schedule_.reserve(what.bytes());
    up.receives.push_back({circle_.at(place(mine + step + root)), child, what.bytes()});
    inputs.push_back(child);
  }
  void* const sum = mine == 0 ? what.out : inputs.size() > 1 ? schedule_.reserve(what.bytes()) : nullptr;
  if (sum) up.then = [inputs, sum, what] { combine(what.dtype, what.reduction, inputs, sum, what.count); };
  if (mine > 0)
    schedule_.add().sends = {{circle_.at(place(mine - step + root)), sum ? sum : what.in, what.bytes()}};
}

void MessageRounds::all_reduce(const Combination& what) {
  if (size() == 1) {
    schedule_.add().then = [what] { copy_bytes(what.out, what.in, what.bytes()); };
    return;
  }
  if (what.bytes() <= one_shot_bytes) {
    if (rank_order_ || size() <= few_ranks) return one_shot(what);
    return recursive_doubling(what);
  }
  const std::vector<std::int64_t> counts = even_counts(what.count, size());
  const Parts parts(counts, size_of(what.dtype));
  Combination slice = what;
  slice.out = at(what.out, parts.begin[index(me())]);
  reduce_scatter(slice, counts);
  all_gather(slice.out, what.out, parts);
}

void MessageRounds::one_shot(const Combination& what) {
  Round& round = schedule_.add();
  std::vector<const void*> inputs;
  std::byte* const theirs = schedule_.reserve(what.bytes() * index(size()));
  for (int p = 0; p < size(); ++p) {
    std::byte* const input = theirs + what.bytes() * index(p);
    inputs.push_back(p == me() ? what.in : input);
    if (p == me()) continue;
    round.sends.push_back({circle_.at(p), what.in, what.bytes()});
    round.receives.push_back({circle_.at(p), input, what.bytes()});
  }
  round.then = [inputs, what] { combine(what.dtype, what.reduction, inputs, what.out, what.count); };
}

// Partners combine in the same order, so both have the same bits. The ranks beyond the largest power of two
// give theirs to a neighbour first, and get the result from it.
void MessageRounds::recursive_doubling(const Combination& what) {
  int power = 1;
  while (2 * power <= size()) power *= 2;
  const int beyond = size() - power;
  const bool paired = me() < 2 * beyond;
  std::byte* const theirs = schedule_.reserve(what.bytes());
  const auto combining = [what, theirs](const void* mine, bool mine_first) {
    return [what, theirs, mine, mine_first] {
      const void* const inputs[] = {mine_first ? mine : theirs, mine_first ? theirs : mine};
      combine(what.dtype, what.reduction, inputs, what.out, what.count);
    };
  };
  Round& first = schedule_.add();
  if (paired && me() % 2 == 1) {
    first.sends = {{circle_.at(me() - 1), what.in, what.bytes()}};
    schedule_.add().receives = {{circle_.at(me() - 1), what.out, what.bytes()}};
    return;
  }
  if (paired) {
    first.receives = {{circle_.at(me() + 1), theirs, what.bytes()}};
    first.then = combining(what.in, true);
  } else {
    first.then = [what] { copy_bytes(what.out, what.in, what.bytes()); };
  }
  const auto old_place = [beyond](int virtual_place) {
    return virtual_place < beyond ? 2 * virtual_place : virtual_place + beyond;
  };
  const int mine = paired ? me() / 2 : me() - beyond;
  for (int distance = 1; distance < power; distance *= 2) {
    const Rank partner = circle_.at(old_place(mine ^ distance));
    Round& round = schedule_.add();
    round.sends = {{partner, what.out, what.bytes()}};
    round.receives = {{partner, theirs, what.bytes()}};
    round.then = combining(what.out, (mine & distance) == 0);
  }
  if (paired) schedule_.add().sends = {{circle_.at(me() + 1), what.out, what.bytes()}};
}

void MessageRounds::reduce_scatter(const Combination& what, std::span<const std::int64_t> counts) {
  if (rank_order_ || size() <= few_ranks)
    direct_reduce_scatter(what, counts);
  else
    ring_reduce_scatter(what, counts);
}

// Place r gets everybody's r-th part and combines them in order.
void MessageRounds::direct_reduce_scatter(const Combination& what, std::span<const std::int64_t> counts) {
  const Parts parts(counts, size_of(what.dtype));
  const std::size_t mine = parts.bytes[index(me())];
  std::byte* const theirs = schedule_.reserve(mine * index(size()));
  std::vector<const void*> inputs;
  Round& round = schedule_.add();
  for (int p = 0; p < size(); ++p) {
    const std::byte* part = at(what.in, parts.begin[index(p)]);
    std::byte* const input = theirs + mine * index(p);
    inputs.push_back(p == me() ? part : input);
    if (p == me()) continue;
    round.sends.push_back({circle_.at(p), part, parts.bytes[index(p)]});
    round.receives.push_back({circle_.at(p), input, mine});
  }
  round.then = [inputs, what, count = counts[index(me())]] {
    combine(what.dtype, what.reduction, inputs, what.out, count);
  };
}

// The sum of part r starts at place r + 1 and travels around to r.
void MessageRounds::ring_reduce_scatter(const Combination& what, std::span<const std::int64_t> counts) {
  const Parts parts(counts, size_of(what.dtype));
  const std::size_t largest = *std::max_element(parts.bytes.begin(), parts.bytes.end());
  std::byte* const sums[] = {schedule_.reserve(largest), schedule_.reserve(largest)};
  for (int step = 0; step + 1 < size(); ++step) {
    const std::size_t sent = index(place(me() - 1 - step)), received = index(place(me() - 2 - step));
    const std::byte* const own = at(what.in, parts.begin[received]);
    std::byte* const sum = sums[step % 2];
    const void* const out = step + 2 < size() ? sum : what.out;
    Round& round = schedule_.add();
    round.sends = {{circle_.at(place(me() + 1)),
                    step == 0 ? at(what.in, parts.begin[sent]) : sums[1 - step % 2], parts.bytes[sent]}};
    round.receives = {{circle_.at(place(me() - 1)), sum, parts.bytes[received]}};
    round.then = [what, sum, own, out, count = counts[received]] {
      const void* const inputs[] = {sum, own};
      combine(what.dtype, what.reduction, inputs, const_cast<void*>(out), count);
    };
  }
}

void MessageRounds::all_gather(const void* mine, void* out, const Parts& parts) {
  if (size() > few_ranks && parts.total <= many_small_bytes) return doubling_all_gather(mine, out, parts);
  if (size() <= few_ranks || parts.total / index(size()) <= window_bytes)
    return direct_all_gather(mine, out, parts);
  schedule_.add().then = [to = at(out, parts.begin[index(me())]), mine, bytes = parts.bytes[index(me())]] {
    copy_bytes(to, mine, bytes);
  };
  ring_all_gather(out, parts);
}

void MessageRounds::direct_all_gather(const void* mine, void* out, const Parts& parts) {
  Round& round = schedule_.add();
  for (int p = 0; p < size(); ++p) {
    if (p == me()) continue;
    round.sends.push_back({circle_.at(p), mine, parts.bytes[index(me())]});
    round.receives.push_back({circle_.at(p), at(out, parts.begin[index(p)]), parts.bytes[index(p)]});
  }
  round.then = [to = at(out, parts.begin[index(me())]), mine, bytes = parts.bytes[index(me())]] {
    copy_bytes(to, mine, bytes);
  };
}

void MessageRounds::ring_all_gather(void* out, const Parts& parts) {
  for (int step = 0; step + 1 < size(); ++step) {
    const std::size_t sent = index(place(me() - step)), received = index(place(me() - 1 - step));
    Round& round = schedule_.add();
    round.sends = {{circle_.at(place(me() + 1)), at(out, parts.begin[sent]), parts.bytes[sent]}};
    round.receives = {{circle_.at(place(me() - 1)), at(out, parts.begin[received]), parts.bytes[received]}};
  }
}

// Bruck et al. 1997: what a rank holds doubles in each of ceil(log2 n) rounds. Memory in between starts with
// its own part, and goes on with those of the places above.
void MessageRounds::doubling_all_gather(const void* mine, void* out, const Parts& parts) {
  std::byte* const held = schedule_.reserve(parts.total);
  std::vector<std::size_t> begin = {0};
  for (int p = 0; p < size(); ++p) begin.push_back(begin.back() + parts.bytes[index(place(me() + p))]);
  schedule_.add().then = [held, mine, bytes = begin[1]] { copy_bytes(held, mine, bytes); };
  for (int distance = 1; distance < size(); distance *= 2) {
    const int count = std::min(distance, size() - distance);
    Round& round = schedule_.add();
    round.sends = {{circle_.at(place(me() - distance)), held, begin[index(count)]}};
    round.receives = {{circle_.at(place(me() + distance)), held + begin[index(distance)],
                       begin[index(distance + count)] - begin[index(distance)]}};
  }
  schedule_.rounds.back().then = [held, out, begin, parts, me = me()] {
    const std::size_t n = parts.bytes.size();
    for (std::size_t p = 0; p < n; ++p) {
      const std::size_t part = (index(me) + p) % n;
      copy_bytes(at(out, parts.begin[part]), held + begin[p], parts.bytes[part]);
    }
  };
}

// With many ranks and large parts to a few at a time, each time other ones, so that nobody is flooded.
void MessageRounds::all_to_all(const void* in, const Parts& sent, void* out, const Parts& received) {
  const bool windows =
      size() > few_ranks && std::max(sent.total, received.total) > window_bytes * index(size());
  const int window = windows ? few_ranks : size();
  for (int first = 1; first < size(); first += window) {
    Round& round = schedule_.add();
    for (int step = first; step < std::min(first + window, size()); ++step) {
      const int to = place(me() + step), from = place(me() - step);
      round.sends.push_back({circle_.at(to), at(in, sent.begin[index(to)]), sent.bytes[index(to)]});
      round.receives.push_back(
          {circle_.at(from), at(out, received.begin[index(from)]), received.bytes[index(from)]});
    }
  }
  schedule_.add().then = [to = at(out, received.begin[index(me())]), from = at(in, sent.begin[index(me())]),
                          bytes = sent.bytes[index(me())]] { copy_bytes(to, from, bytes); };
}

// Every rank sends to all above it and combines what comes from below: half precision is rounded once, and
// the bits are those of a loop over the ranks.
void MessageRounds::scan(const Combination& what, bool inclusive) {
  std::byte* const theirs = schedule_.reserve(what.bytes() * index(me()));
  std::vector<const void*> inputs;
  Round& round = schedule_.add();
  for (int p = me() + 1; p < size(); ++p) round.sends.push_back({circle_.at(p), what.in, what.bytes()});
  for (int p = 0; p < me(); ++p) {
    std::byte* const input = theirs + what.bytes() * index(p);
    round.receives.push_back({circle_.at(p), input, what.bytes()});
    inputs.push_back(input);
  }
  if (inclusive) inputs.push_back(what.in);
  round.then = [inputs, what] {
    if (inputs.empty())
      fill_identity(what.dtype, what.reduction, what.out, what.count);
    else
      combine(what.dtype, what.reduction, inputs, what.out, what.count);
  };
}

// `in` may be `out`, so what is passed on is complete before a result is written.
void MessageRounds::scan_along(const Combination& what, bool inclusive) {
  const auto finish = [what, inclusive, first = me() == 0](const void* before, const void* sum) {
    if (inclusive)
      copy_bytes(what.out, sum, what.bytes());
    else if (first)
      fill_identity(what.dtype, what.reduction, what.out, what.count);
    else
      copy_bytes(what.out, before, what.bytes());
  };
  const void* before = nullptr;
  const void* sum = what.in;
  if (me() > 0) {
    std::byte* const theirs = schedule_.reserve(what.bytes());
    std::byte* const both = schedule_.reserve(what.bytes());
    Round& round = schedule_.add();
    round.receives = {{circle_.at(me() - 1), theirs, what.bytes()}};
    round.then = [what, theirs, both] {
      const void* const inputs[] = {theirs, what.in};
      combine(what.dtype, what.reduction, inputs, both, what.count);
    };
    before = theirs;
    sum = both;
  }
  Round& round = schedule_.add();
  if (me() + 1 < size()) round.sends = {{circle_.at(me() + 1), sum, what.bytes()}};
  round.then = [finish, before, sum] { finish(before, sum); };
}

}  // namespace shoal::comm
