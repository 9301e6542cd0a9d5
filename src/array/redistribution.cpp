// SPDX-License-Identifier: Apache-2.0
// From one layout to another of the same shape.
#include "shoal/array/redistribution.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "array/guarded.h"
#include "shoal/array/box.h"
#include "shoal/base/error.h"

namespace shoal::array {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// What two blocks of one global array have in common, as seen from `block`.
struct Common {
  Shape begin;  // within `block`
  Shape extent;
};
Common common_part(const Block& block, const Block& other) {
  Common common;
  for (std::size_t a = 0; a < block.begin.size(); ++a) {
    const Index begin = std::max(block.begin[a], other.begin[a]);
    const Index end = std::min(block.begin[a] + block.extent[a], other.begin[a] + other.extent[a]);
    common.begin.push_back(begin - block.begin[a]);
    common.extent.push_back(std::max<Index>(0, end - begin));
  }
  return common;
}

// One rank's block cut into the pieces that each peer has of it, in one direction.
struct Side {
  Shape shape;                       // of the block
  std::vector<Common> pieces;        // by peer
  std::vector<std::int64_t> counts;  // elements on the wire, by peer
  bool in_order = true;              // the pieces lie one after the other in the block's memory

  Side(const Layout& mine, const Layout& theirs, Rank rank) {
    const Block block = mine.block(rank);
    shape = block.extent;
    Index next = 0;
    for (Rank peer = 0; peer < theirs.ranks(); ++peer) {
      pieces.push_back(common_part(block, theirs.block(peer)));
      const Common& piece = pieces.back();
      counts.push_back(size_of_shape(piece.extent));
      if (counts.back() == 0) continue;
      in_order = in_order && contiguous_offset({shape, piece.begin}, piece.extent) == next;
      next += counts.back();
    }
  }

  // visit(place in the block, extent, offset in the packed memory) for each piece that travels.
  template <class Visit>
  void for_each_piece(const Visit& visit) const {
    Index packed = 0;
    for (std::size_t peer = 0; peer < pieces.size(); ++peer) {
      if (counts[peer] > 0) visit(Place{shape, pieces[peer].begin}, pieces[peer].extent, packed);
      packed += counts[peer];
    }
  }
  Index packed_size() const { return std::accumulate(counts.begin(), counts.end(), Index{0}); }
};

}  // namespace

template <class T>
struct Redistribution<T>::Plan {
  comm::Communicator communicator;
  Layout from, to;
  Side sent, received;
  bool gathers = false;  // to replicas, of which each rank sends its part once
  bool self_apart = false;
  Common self_sent, self_received;
  std::vector<std::int64_t> part_sizes;  // of all ranks, when it gathers
  std::vector<T> packed, arrived;

  Plan(const comm::Communicator& c, const Layout& from_in, const Layout& to_in)
      : communicator(c), from(from_in), to(to_in), sent(from, to, c.rank()), received(to, from, c.rank()) {
    const std::size_t me = at(c.rank());
    if (from == to || from.is_replicated()) return;
    gathers = to.is_replicated();
    if (gathers) {
      part_sizes = received.counts;
      if (!received.in_order) arrived.resize(at(to.size()));
      return;
    }
    // What a rank keeps is copied at once, unless memory is used as it is and the part lies within.
    self_apart = !sent.in_order && !received.in_order;
    if (self_apart) {
      self_sent = sent.pieces[me];
      self_received = received.pieces[me];
      sent.counts[me] = received.counts[me] = 0;
    }
    if (!sent.in_order) packed.resize(at(sent.packed_size()));
    if (!received.in_order) arrived.resize(at(received.packed_size()));
  }

  void run(std::span<const T> x, std::span<T> y) {
    if (from == to) {
      std::copy(x.begin(), x.end(), y.begin());
    } else if (from.is_replicated()) {
      const Block block = to.block(communicator.rank());
      const Shape origin(block.extent.size(), 0);
      copy_box(x.data(), {from.shape(), block.begin}, y.data(), {block.extent, origin}, block.extent);
    } else if (gathers) {
      communicator.all_gather(x, received.in_order ? y : std::span<T>(arrived), part_sizes);
      unpack(y);
    } else {
      exchange(x, y);
    }
  }

  void exchange(std::span<const T> x, std::span<T> y) {
    if (!sent.in_order)
      sent.for_each_piece([&](const Place& place, const Shape& extent, Index offset) {
        copy_box(x.data(), place, packed.data() + offset, {extent, Shape(extent.size(), 0)}, extent);
      });
    const std::span<const T> out = sent.in_order ? x : std::span<const T>(packed);
    const std::span<T> in = received.in_order ? y : std::span<T>(arrived);
    comm::Request request = communicator.all_to_all_async(out, sent.counts, in, received.counts);
    if (self_apart)
      copy_box(x.data(), {sent.shape, self_sent.begin}, y.data(), {received.shape, self_received.begin},
               self_sent.extent);
    request.wait();
    unpack(y);
  }

  void unpack(std::span<T> y) const {
    if (received.in_order) return;
    received.for_each_piece([&](const Place& place, const Shape& extent, Index offset) {
      copy_box(arrived.data() + offset, {extent, Shape(extent.size(), 0)}, y.data(), place, extent);
    });
  }
};

template <class T>
Redistribution<T>::Redistribution(const comm::Communicator& communicator, const Layout& from,
                                  const Layout& to) {
  if (from.shape() != to.shape())
    fail(ErrorCode::invalid_argument,
         fmt::format("redistribution from {} to {}: the shapes differ", from.describe(), to.describe()));
  for (const Layout* layout : {&from, &to})
    if (layout->ranks() != communicator.size())
      fail(ErrorCode::invalid_argument, fmt::format("redistribution: {} on a communicator of {} ranks",
                                                    layout->describe(), communicator.size()));
  plan_ = std::make_unique<Plan>(communicator, from, to);
}

template <class T>
Redistribution<T>::~Redistribution() = default;
template <class T>
Redistribution<T>::Redistribution(Redistribution&&) noexcept = default;
template <class T>
Redistribution<T>& Redistribution<T>::operator=(Redistribution&&) noexcept = default;

template <class T>
void Redistribution<T>::run(const DistributedArray<T>& x, DistributedArray<T>& y) {
  require_equal(x.layout(), plan_->from, "redistribution: input");
  require_equal(y.layout(), plan_->to, "redistribution: output");
  const std::span<const T> in = x.local(), out = y.local();
  const std::less<const T*> before;
  if (!in.empty() && !out.empty() && before(in.data(), out.data() + out.size()) &&
      before(out.data(), in.data() + in.size()))
    fail(ErrorCode::invalid_argument, "redistribution: input and output share memory");
  plan_->run(in, y.local());
}

template <class T>
DistributedArray<T> redistribute(const DistributedArray<T>& x, const Layout& to, const Guard& guard) {
  std::optional<Redistribution<T>> redistribution;
  std::optional<DistributedArray<T>> result;
  guard([&] {
    redistribution.emplace(x.communicator(), x.layout(), to);
    result.emplace(x.communicator(), to, uninitialised);
  });
  result->share_mask(x);
  redistribution->run(x, *result);
  return std::move(*result);
}

template <class T>
DistributedArray<T> redistribute(const DistributedArray<T>& x, const Layout& to) {
  return redistribute(x, to, unguarded);
}

#define SHOAL_ARRAY_REDISTRIBUTION(T)                                                                 \
  template class Redistribution<T>;                                                                   \
  template DistributedArray<T> redistribute(const DistributedArray<T>&, const Layout&, const Guard&); \
  template DistributedArray<T> redistribute(const DistributedArray<T>&, const Layout&);
SHOAL_ARRAY_REDISTRIBUTION(float)
SHOAL_ARRAY_REDISTRIBUTION(double)
SHOAL_ARRAY_REDISTRIBUTION(std::complex<float>)
SHOAL_ARRAY_REDISTRIBUTION(std::complex<double>)
#undef SHOAL_ARRAY_REDISTRIBUTION

}  // namespace shoal::array
