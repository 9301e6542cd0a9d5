// SPDX-License-Identifier: Apache-2.0
#include "linop/slab_steps.h"

#include <algorithm>
#include <numeric>

#include "linop/streaming_copy.h"
#include "linop/tile_transform.h"

namespace shoal::linop {
namespace {

using array::Rank;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

struct Parts {
  explicit Parts(std::vector<Index> counts) : count(std::move(counts)) {
    for (const Index n : count) {
      begin.push_back(total);
      total += n;
      largest = std::max(largest, n);
    }
  }
  std::vector<Index> count, begin;
  Index total = 0, largest = 0;
};

template <class C>
struct Copier {
  bool streams;
  void operator()(const C* from, Index count, C* to) const {
    if (streams)
      copy_streaming(from, to, at(count) * sizeof(C));
    else
      std::copy_n(from, count, to);
  }
  /// After the last copy, before others are told.
  void end() const {
    if (streams) array::simd::end_streaming();
  }
};

template <class C>
bool streams(Index elements) {
  return at(elements) * sizeof(C) >= streaming_bytes;
}

template <class T>
class PlanesStep final : public FftStep<array::Real<T>> {
 public:
  using R = array::Real<T>;
  using C = std::complex<R>;

  PlanesStep(SharedSlab<R> memory, const SlabShape& slab, const Shape& plane, const std::vector<int>& axes,
             int halved)
      : FftStep<R>(bytes_of<T>(slab.rows[at(slab.me)] * array::size_of_shape(plane)), 0),
        memory_(std::move(memory)),
        columns_(slab.columns),
        rows_(slab.rows[at(slab.me)]),
        rest_(slab.rest),
        plane_size_(array::size_of_shape(plane)),
        me_(slab.me),
        transform_(plane, axes, halved),
        plane_(at(columns_.total * rest_)),
        reals_(array::is_complex<T> ? 0 : at(plane_size_)) {}
  bool redistributes() const override { return true; }

  void forward(const void* in, void*, SpectrumScale<R> scale) override {
    const Copier<C> copy{streams<C>(rows_ * columns_.total * rest_)};
    memory_->meet();
    for (Index row = 0; row < rows_; ++row) {
      transform_.forward(static_cast<const T*>(in) + row * plane_size_, plane_.data(), scale);
      for_each_part(row, [&](C* plane, Index size, C* part) { copy(plane, size, part); });
    }
    copy.end();
    memory_->meet();
  }
  void backward(const void*, void* out, SpectrumScale<R> scale) override {
    const Copier<T> copy{streams<T>(rows_ * plane_size_)};
    memory_->meet();
    for (Index row = 0; row < rows_; ++row) {
      for_each_part(row, [](C* plane, Index size, const C* part) { std::copy_n(part, size, plane); });
      transform_.backward(plane_.data(), result(), scale);
      copy(result(), plane_size_, static_cast<T*>(out) + row * plane_size_);
    }
    copy.end();
  }

 private:
  // Of a plane on the way back: complex ones stay in place.
  T* result() const {
    if constexpr (array::is_complex<T>)
      return plane_.data();
    else
      return reals_.data();
  }
  // visit(part of the plane, elements, where they are with their owner): from the next rank on, so that not
  // all go to one at once.
  template <class Visit>
  void for_each_part(Index row, const Visit& visit) const {
    const Rank ranks = static_cast<Rank>(columns_.count.size());
    for (Rank i = 1; i <= ranks; ++i) {
      const Rank peer = (me_ + i) % ranks;
      const Index size = columns_.count[at(peer)] * rest_;
      visit(plane_.data() + columns_.begin[at(peer)] * rest_, size, memory_->columns_of(peer) + row * size);
    }
  }

  SharedSlab<R> memory_;
  Parts columns_;
  Index rows_, rest_, plane_size_;
  Rank me_;
  BlockTransform<R> transform_;
  CacheBuffer<C> plane_;  // a spectrum
  CacheBuffer<R> reals_;
};

// Tiles of columns of the memory: each [n0, width].
template <class R>
class MemoryTiles {
 public:
  using C = std::complex<R>;
  MemoryTiles(SharedSlab<R> memory, const SlabShape& slab)
      : memory_(std::move(memory)),
        rows_(slab.rows),
        row_size_(slab.columns[at(slab.me)] * slab.rest),
        copy_{streams<C>(rows_.total * row_size_)} {}
  void meet() const { memory_->meet(); }
  void load(Index first, Index width, C* tile) const {
    for_each_row([&](const C* row, Index i) { std::copy_n(row + first, width, tile + i * width); });
  }
  void store(const C* tile, Index first, Index width) const {
    for_each_row([&](C* row, Index i) { copy_(tile + i * width, width, row + first); });
  }
  void end_stores() const { copy_.end(); }

 private:
  template <class Visit>
  void for_each_row(const Visit& visit) const {
    for (std::size_t peer = 0; peer < rows_.count.size(); ++peer) {
      C* row = memory_->rows_of(static_cast<Rank>(peer));
      for (Index i = 0; i < rows_.count[peer]; ++i, row += row_size_) visit(row, rows_.begin[peer] + i);
    }
  }
  SharedSlab<R> memory_;
  Parts rows_;
  Index row_size_;
  Copier<C> copy_;
};

// The transforms of tiles of some width, and of the last one.
template <class R>
class TileColumns {
 public:
  static constexpr Index tile = TileTransform<R>::best_width;
  TileColumns(Index rows, Index columns) {
    for (const Direction direction : {Direction::forward, Direction::backward})
      for (const Index width : {tile, columns % tile})
        transforms_.emplace_back(direction, false, rows, width, width, width);
  }
  const TileTransform<R>& transform(Direction direction, Index width) const {
    return transforms_[(direction == Direction::forward ? 0 : 2) + (width == tile ? 0 : 1)];
  }

 private:
  std::vector<TileTransform<R>> transforms_;  // forward: tile, rest; backward
};

template <class R>
class OwnColumnsStep final : public FftStep<R> {
 public:
  using C = std::complex<R>;
  OwnColumnsStep(const SharedSlab<R>& memory, const SlabShape& slab)
      : FftStep<R>(0, bytes_of<C>(Parts(slab.rows).total * slab.columns[at(slab.me)] * slab.rest)),
        memory_(memory, slab),
        rows_(Parts(slab.rows).total),
        row_size_(slab.columns[at(slab.me)] * slab.rest),
        transforms_(rows_, row_size_),
        tile_(at(rows_ * TileColumns<R>::tile)),
        spectrum_(at(rows_ * TileColumns<R>::tile)) {}

  void forward(const void*, void* out, SpectrumScale<R>) override {
    const Copier<C> copy{streams<C>(rows_ * row_size_)};
    for_each_tile([&](Index first, Index width) {
      memory_.load(first, width, tile_.data());
      transforms_.transform(Direction::forward, width).run(tile_.data(), spectrum_.data());
      for (Index row = 0; row < rows_; ++row)
        copy(spectrum_.data() + row * width, width, static_cast<C*>(out) + row * row_size_ + first);
    });
    copy.end();
  }
  void backward(const void* in, void*, SpectrumScale<R>) override {
    memory_.meet();
    for_each_tile([&](Index first, Index width) {
      for (Index row = 0; row < rows_; ++row)
        std::copy_n(static_cast<const C*>(in) + row * row_size_ + first, width, tile_.data() + row * width);
      transforms_.transform(Direction::backward, width).run(tile_.data(), spectrum_.data());
      memory_.store(spectrum_.data(), first, width);
    });
    memory_.end_stores();
  }

 private:
  template <class Visit>
  void for_each_tile(const Visit& visit) const {
    constexpr Index tile = TileColumns<R>::tile;
    for (Index first = 0; first < row_size_; first += tile) visit(first, std::min(tile, row_size_ - first));
  }
  MemoryTiles<R> memory_;
  Index rows_, row_size_;
  TileColumns<R> transforms_;
  CacheBuffer<C> tile_, spectrum_;
};

template <class R>
class ColumnsStep final : public FftStep<R> {
 public:
  using C = std::complex<R>;
  using Pipe = TilePipe<C>;

  ColumnsStep(const SharedSlab<R>& memory, std::shared_ptr<Pipe> pipe, const SlabShape& slab)
      : FftStep<R>(0, bytes_of<C>(slab.rows[at(slab.me)] * Parts(slab.columns).total * slab.rest)),
        memory_(memory, slab),
        pipe_(std::move(pipe)),
        rows_(slab.rows),
        columns_(slab.columns),
        rest_(slab.rest),
        me_(at(slab.me)),
        items_((columns_.largest * rest_ + tile_ - 1) / tile_),
        transforms_(rows_.total, own_size()),
        tile_in_(at(rows_.total * tile_)),
        spectrum_(at(rows_.total * tile_)) {}
  bool redistributes() const override { return true; }

  void forward(const void*, void* out, SpectrumScale<R>) override {
    Forward work{*this, static_cast<C*>(out), {streams<C>(out_size())}};
    pipe_->run(items_, work);
    work.copy.end();
  }
  void backward(const void* in, void*, SpectrumScale<R>) override {
    memory_.meet();
    Backward work{*this, static_cast<const C*>(in)};
    pipe_->run(items_, work);
    memory_.end_stores();
  }

 private:
  Index own_size() const { return columns_.count[me_] * rest_; }
  Index out_row() const { return columns_.total * rest_; }
  Index out_size() const { return rows_.count[me_] * out_row(); }
  // Columns of this tile among those of a rank.
  Index width(Index item, Rank rank) const {
    return std::clamp<Index>(columns_.count[at(rank)] * rest_ - item * tile_, 0, tile_);
  }
  struct Forward {
    static constexpr bool own_at_once = true;
    const ColumnsStep& step;
    C* out;
    Copier<C> copy;

    Index own_width(Index item) const { return step.width(item, static_cast<Rank>(step.me_)); }
    void produce(Index item) const {
      const Index columns = own_width(item);
      if (columns == 0) return;
      step.memory_.load(item * tile_, columns, step.tile_in_.data());
      step.transforms_.transform(Direction::forward, columns)
          .run(step.tile_in_.data(), step.spectrum_.data());
    }
    const C* rows_for(Index item, Rank rank) const {
      return step.spectrum_.data() + step.rows_.begin[at(rank)] * own_width(item);
    }
    void fill(Index item, Rank peer, C* slot) const {
      std::copy_n(rows_for(item, peer), step.rows_.count[at(peer)] * own_width(item), slot);
    }
    void own(Index item) const {
      consume(item, static_cast<Rank>(step.me_), rows_for(item, static_cast<Rank>(step.me_)));
    }
    void consume(Index item, Rank peer, const C* data) const {
      const Index columns = step.width(item, peer);
      C* to = out + step.columns_.begin[at(peer)] * step.rest_ + item * step.tile_;
      if (columns == 0) return;
      for (Index row = 0; row < step.rows_.count[step.me_]; ++row)
        copy(data + row * columns, columns, to + row * step.out_row());
    }
    void finish(Index) const {}
  };

  struct Backward {
    static constexpr bool own_at_once = false;
    const ColumnsStep& step;
    const C* in;

    void produce(Index) const {}
    void fill(Index item, Rank peer, C* slot) const {
      const Index columns = step.width(item, peer);
      const C* from = in + step.columns_.begin[at(peer)] * step.rest_ + item * tile_;
      if (columns == 0) return;
      for (Index row = 0; row < step.rows_.count[step.me_]; ++row)
        std::copy_n(from + row * step.out_row(), columns, slot + row * columns);
    }
    void own(Index item) const { fill(item, static_cast<Rank>(step.me_), tile_rows(item, step.me_)); }
    void consume(Index item, Rank peer, const C* data) const {
      const Index columns = step.width(item, static_cast<Rank>(step.me_));
      std::copy_n(data, step.rows_.count[at(peer)] * columns, tile_rows(item, at(peer)));
    }
    C* tile_rows(Index item, std::size_t rank) const {
      return step.tile_in_.data() + step.rows_.begin[rank] * step.width(item, static_cast<Rank>(step.me_));
    }
    void finish(Index item) const {
      const Index columns = step.width(item, static_cast<Rank>(step.me_));
      if (columns == 0) return;
      step.transforms_.transform(Direction::backward, columns)
          .run(step.tile_in_.data(), step.spectrum_.data());
      step.memory_.store(step.spectrum_.data(), item * tile_, columns);
    }
  };

  static constexpr Index tile_ = TileColumns<R>::tile;
  MemoryTiles<R> memory_;
  std::shared_ptr<Pipe> pipe_;
  Parts rows_, columns_;
  Index rest_;
  std::size_t me_;
  Index items_;
  TileColumns<R> transforms_;
  CacheBuffer<C> tile_in_, spectrum_;
};

}  // namespace

template <class R>
Index slab_slot(const SlabShape& slab) {
  return Parts(slab.rows).largest * TileTransform<R>::best_width;
}

Index largest_part(const SlabShape& slab) {
  return Parts(slab.rows).largest * Parts(slab.columns).largest * slab.rest;
}

template <class T>
std::unique_ptr<FftStep<array::Real<T>>> planes_step(const SharedSlab<array::Real<T>>& memory,
                                                     const SlabShape& slab, const Shape& plane,
                                                     const std::vector<int>& axes, int halved) {
  return std::make_unique<PlanesStep<T>>(memory, slab, plane, axes, halved);
}

template <class R>
std::unique_ptr<FftStep<R>> columns_step(const SharedSlab<R>& memory,
                                         const std::shared_ptr<TilePipe<std::complex<R>>>& pipe,
                                         const SlabShape& slab) {
  return std::make_unique<ColumnsStep<R>>(memory, pipe, slab);
}

template <class R>
std::unique_ptr<FftStep<R>> own_columns_step(const SharedSlab<R>& memory, const SlabShape& slab) {
  return std::make_unique<OwnColumnsStep<R>>(memory, slab);
}

#define SHOAL_INSTANTIATE(R)                                                                                \
  template Index slab_slot<R>(const SlabShape&);                                                            \
  template std::unique_ptr<FftStep<R>> planes_step<R>(const SharedSlab<R>&, const SlabShape&, const Shape&, \
                                                      const std::vector<int>&, int);                        \
  template std::unique_ptr<FftStep<R>> planes_step<std::complex<R>>(                                        \
      const SharedSlab<R>&, const SlabShape&, const Shape&, const std::vector<int>&, int);                  \
  template std::unique_ptr<FftStep<R>> columns_step(                                                        \
      const SharedSlab<R>&, const std::shared_ptr<TilePipe<std::complex<R>>>&, const SlabShape&);           \
  template std::unique_ptr<FftStep<R>> own_columns_step(const SharedSlab<R>&, const SlabShape&);
SHOAL_INSTANTIATE(float)
SHOAL_INSTANTIATE(double)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
