// SPDX-License-Identifier: Apache-2.0
// The same elements, numbered in C order, in another shape.
#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "array/guarded.h"
#include "shoal/array/redistribution.h"
#include "shoal/base/error.h"

namespace shoal::array {
namespace {

// The block of a rank as runs of contiguous elements of the global array, in ascending order. They follow one
// another without gaps in the local memory.
class Runs {
 public:
  Runs(const Layout& layout, Rank rank) : shape_(layout.shape()), block_(layout.block(rank)) {
    done_ = block_.size() == 0;
    outer_ = shape_.size();
    Index stride = 1;
    strides_.resize(shape_.size());
    for (std::size_t a = shape_.size(); a-- > 0;) {
      strides_[a] = stride;
      if (length_ == stride) {  // all axes further in are whole
        length_ *= block_.extent[a];
        outer_ = a;
      }
      stride *= shape_[a];
      global_ += block_.begin[a] * strides_[a];
    }
    index_.assign(outer_, 0);
  }

  bool done() const { return done_; }
  Index global() const { return global_ + used_; }
  Index local() const { return local_ + used_; }
  Index left() const { return length_ - used_; }  // of this run

  /// Moves on by `count` elements of this run at most.
  void advance(Index count) {
    used_ += count;
    if (used_ < length_) return;
    local_ += length_;
    used_ = 0;
    std::size_t a = outer_;
    for (; a > 0; --a) {
      global_ += strides_[a - 1];
      if (++index_[a - 1] < block_.extent[a - 1]) return;
      global_ -= block_.extent[a - 1] * strides_[a - 1];
      index_[a - 1] = 0;
    }
    done_ = true;
  }

 private:
  Shape shape_;
  Block block_;
  std::vector<Index> strides_, index_;
  std::size_t outer_ = 0;  // axes that a run does not cover
  Index length_ = 1, global_ = 0, local_ = 0, used_ = 0;
  bool done_ = false;
};

// visit(local offset on one side, on the other, count) for all that two ranks have in common, in global
// order.
template <class Visit>
void for_each_common_run(const Layout& a, Rank rank_a, const Layout& b, Rank rank_b, const Visit& visit) {
  Runs x(a, rank_a), y(b, rank_b);
  while (!x.done() && !y.done()) {
    if (x.global() + x.left() <= y.global()) {
      x.advance(x.left());
    } else if (y.global() + y.left() <= x.global()) {
      y.advance(y.left());
    } else {
      const Index begin = std::max(x.global(), y.global());
      x.advance(begin - x.global());
      y.advance(begin - y.global());
      const Index count = std::min(x.left(), y.left());
      visit(x.local(), y.local(), count);
      x.advance(count);
      y.advance(count);
    }
  }
}

std::int64_t common_size(const Layout& a, Rank rank_a, const Layout& b, Rank rank_b) {
  std::int64_t size = 0;
  for_each_common_run(a, rank_a, b, rank_b, [&](Index, Index, Index count) { size += count; });
  return size;
}

template <class T>
void reshape_split(const DistributedArray<T>& x, DistributedArray<T>& y, const Guard& guard) {
  comm::Communicator communicator = x.communicator();
  const Layout &from = x.layout(), &to = y.layout();
  const Rank me = communicator.rank();
  std::vector<std::int64_t> send_counts, recv_counts;
  std::vector<T> packed, arrived;
  guard([&] {
    for (Rank peer = 0; peer < communicator.size(); ++peer) {
      send_counts.push_back(common_size(from, me, to, peer));
      recv_counts.push_back(common_size(to, me, from, peer));
    }
    packed.resize(x.local().size());
    arrived.resize(y.local().size());
  });
  Index next = 0;
  for (Rank peer = 0; peer < communicator.size(); ++peer)
    for_each_common_run(from, me, to, peer, [&](Index local, Index, Index count) {
      std::copy_n(x.local().data() + local, count, packed.data() + next);
      next += count;
    });
  communicator.all_to_all(packed, send_counts, arrived, recv_counts);
  next = 0;
  for (Rank peer = 0; peer < communicator.size(); ++peer)
    for_each_common_run(to, me, from, peer, [&](Index local, Index, Index count) {
      std::copy_n(arrived.data() + next, count, y.local().data() + local);
      next += count;
    });
}

// Into the memory of y, whose elements in C order are those of the replicas.
template <class T>
void gather_replicas(const DistributedArray<T>& x, DistributedArray<T>& y, const Guard& guard) {
  std::optional<Redistribution<T>> redistribution;
  std::optional<DistributedArray<T>> replicas;
  guard([&] {
    const Layout layout = Layout::replicated(x.layout().shape(), x.layout().ranks());
    redistribution.emplace(x.communicator(), x.layout(), layout);
    replicas.emplace(DistributedArray<T>::adopt(x.communicator(), layout, y.local()));
  });
  redistribution->run(x, *replicas);
}

}  // namespace

template <class T>
DistributedArray<T> reshape(const DistributedArray<T>& x, const Layout& to, const Guard& guard) {
  const Layout& from = x.layout();
  if (from.shape() == to.shape()) return redistribute(x, to, guard);
  if (from.size() != to.size())
    fail(ErrorCode::invalid_argument, fmt::format("reshape from {} to {}: {} elements and {}",
                                                  from.describe(), to.describe(), from.size(), to.size()));
  std::optional<DistributedArray<T>> made;
  guard([&] { made.emplace(x.communicator(), to, uninitialised); });
  DistributedArray<T>& result = *made;
  result.share_mask(x);
  if (from.is_replicated()) {
    for_each_common_run(from, x.rank(), to, x.rank(), [&](Index there, Index here, Index count) {
      std::copy_n(x.local().data() + there, count, result.local().data() + here);
    });
  } else if (to.is_replicated()) {
    gather_replicas(x, result, guard);
  } else {
    reshape_split(x, result, guard);
  }
  return std::move(result);
}

template <class T>
DistributedArray<T> reshape(const DistributedArray<T>& x, const Layout& to) {
  return reshape(x, to, unguarded);
}

template <class T>
DistributedArray<T> ravel(const DistributedArray<T>& x) {
  const int ranks = x.layout().ranks();
  const Shape shape = {x.size()};
  return reshape(x,
                 x.layout().is_replicated() ? Layout::replicated(shape, ranks) : Layout::split(shape, ranks));
}

#define SHOAL_ARRAY_RESHAPE(T)                                                                   \
  template DistributedArray<T> reshape(const DistributedArray<T>&, const Layout&);               \
  template DistributedArray<T> reshape(const DistributedArray<T>&, const Layout&, const Guard&); \
  template DistributedArray<T> ravel(const DistributedArray<T>&);
SHOAL_ARRAY_RESHAPE(float)
SHOAL_ARRAY_RESHAPE(double)
SHOAL_ARRAY_RESHAPE(std::complex<float>)
SHOAL_ARRAY_RESHAPE(std::complex<double>)
#undef SHOAL_ARRAY_RESHAPE

}  // namespace shoal::array
