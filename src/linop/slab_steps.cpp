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
  ~Copier() {
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
  using Pipe = TilePipe<C>;

  PlanesStep(std::shared_ptr<Pipe> pipe, const SlabShape& slab, const Shape& plane,
             const std::vector<int>& axes, int halved)
      : FftStep<R>(bytes_of<T>(slab.rows[at(slab.me)] * array::size_of_shape(plane)),
                   bytes_of<C>(Parts(slab.rows).total * slab.columns[at(slab.me)] * slab.rest)),
        pipe_(std::move(pipe)),
        rows_(slab.rows),
        columns_(slab.columns),
        rest_(slab.rest),
        plane_size_(array::size_of_shape(plane)),
        me_(at(slab.me)),
        transform_(plane, axes, halved),
        plane_(at(columns_.total * rest_)) {}
  bool redistributes() const override { return true; }

  void forward(const void* in, void* out, SpectrumScale<R> scale) override {
    Forward work{*this, static_cast<const T*>(in), static_cast<C*>(out), scale, {streams<C>(out_size())}};
    pipe_->run(rows_.largest, work);
  }
  void backward(const void* in, void* out, SpectrumScale<R> scale) override {
    Backward work{*this, static_cast<const C*>(in), static_cast<T*>(out), scale};
    pipe_->run(rows_.largest, work);
  }

 private:
  Index out_size() const { return rows_.total * own_row(); }
  Index own_row() const { return columns_.count[me_] * rest_; }

  struct Forward {
    static constexpr bool own_at_once = true;
    const PlanesStep& step;
    const T* in;
    C* out;
    SpectrumScale<R> scale;
    Copier<C> copy;

    void produce(Index item) {
      if (item < step.rows_.count[step.me_])
        step.transform_.forward(in + item * step.plane_size_, step.plane_.data(), scale);
    }
    std::span<const C> piece(Index item, Rank peer) const {
      if (item >= step.rows_.count[step.me_]) return {};
      return {step.plane_.data() + step.columns_.begin[at(peer)] * step.rest_,
              at(step.columns_.count[at(peer)] * step.rest_)};
    }
    void consume(Index item, Rank peer, const C* data) const {
      if (item < step.rows_.count[at(peer)])
        copy(data, step.own_row(), out + (step.rows_.begin[at(peer)] + item) * step.own_row());
    }
    void finish(Index) const {}
  };

  struct Backward {
    static constexpr bool own_at_once = false;
    const PlanesStep& step;
    const C* in;
    T* out;
    SpectrumScale<R> scale;

    void produce(Index) const {}
    std::span<const C> piece(Index item, Rank peer) const {
      if (item >= step.rows_.count[at(peer)]) return {};
      return {in + (step.rows_.begin[at(peer)] + item) * step.own_row(), at(step.own_row())};
    }
    void consume(Index item, Rank peer, const C* data) const {
      if (item < step.rows_.count[step.me_])
        std::copy_n(data, step.columns_.count[at(peer)] * step.rest_,
                    step.plane_.data() + step.columns_.begin[at(peer)] * step.rest_);
    }
    void finish(Index item) const {
      if (item < step.rows_.count[step.me_])
        step.transform_.backward(step.plane_.data(), out + item * step.plane_size_, scale);
    }
  };

  std::shared_ptr<Pipe> pipe_;
  Parts rows_, columns_;
  Index rest_, plane_size_;
  std::size_t me_;
  BlockTransform<R> transform_;
  CacheBuffer<C> plane_;  // a spectrum
};

template <class R>
class ColumnsStep final : public FftStep<R> {
 public:
  using C = std::complex<R>;
  using Pipe = TilePipe<C>;

  ColumnsStep(std::shared_ptr<Pipe> pipe, const SlabShape& slab)
      : FftStep<R>(bytes_of<C>(Parts(slab.rows).total * slab.columns[at(slab.me)] * slab.rest),
                   bytes_of<C>(slab.rows[at(slab.me)] * Parts(slab.columns).total * slab.rest)),
        pipe_(std::move(pipe)),
        rows_(slab.rows),
        columns_(slab.columns),
        rest_(slab.rest),
        me_(at(slab.me)),
        items_((columns_.largest * rest_ + tile_ - 1) / tile_),
        tile_in_(at(rows_.total * tile_)),
        spectrum_(at(rows_.total * tile_)),
        packed_(at(2 * static_cast<Index>(slab.rows.size()) * packed_size())) {
    for (const Direction direction : {Direction::forward, Direction::backward})
      for (const Index columns : {tile_, own_size() % tile_})
        transforms_.emplace_back(direction, false, rows_.total, columns, columns, columns);
  }
  bool redistributes() const override { return true; }

  void forward(const void* in, void* out, SpectrumScale<R>) override {
    Forward work{*this, static_cast<const C*>(in), static_cast<C*>(out), {streams<C>(out_size())}};
    pipe_->run(items_, work);
  }
  void backward(const void* in, void* out, SpectrumScale<R>) override {
    Backward work{
        *this, static_cast<const C*>(in), static_cast<C*>(out), {streams<C>(rows_.total * own_size())}};
    pipe_->run(items_, work);
  }

 private:
  Index own_size() const { return columns_.count[me_] * rest_; }
  Index out_row() const { return columns_.total * rest_; }
  Index out_size() const { return rows_.count[me_] * out_row(); }
  Index packed_size() const { return rows_.count[me_] * tile_; }
  // Columns of this tile among those of a rank.
  Index width(Index item, Rank rank) const {
    return std::clamp<Index>(columns_.count[at(rank)] * rest_ - item * tile_, 0, tile_);
  }
  const TileTransform<R>& transform(Direction direction, Index columns) const {
    return transforms_[(direction == Direction::forward ? 0 : 2) + (columns == tile_ ? 0 : 1)];
  }

  struct Forward {
    static constexpr bool own_at_once = true;
    const ColumnsStep& step;
    const C* in;
    C* out;
    Copier<C> copy;

    Index own_width(Index item) const { return step.width(item, static_cast<Rank>(step.me_)); }
    void produce(Index item) const {
      const Index columns = own_width(item);
      if (columns == 0) return;
      const C* from = in + item * step.tile_;
      for (Index row = 0; row < step.rows_.total; ++row)
        std::copy_n(from + row * step.own_size(), columns, step.tile_in_.data() + row * columns);
      step.transform(Direction::forward, columns).run(step.tile_in_.data(), step.spectrum_.data());
    }
    std::span<const C> piece(Index item, Rank peer) const {
      return {step.spectrum_.data() + step.rows_.begin[at(peer)] * own_width(item),
              at(step.rows_.count[at(peer)] * own_width(item))};
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
    C* out;
    Copier<C> copy;

    C* packed(Index item, Rank peer) const {
      const Index ranks = static_cast<Index>(step.rows_.count.size());
      return step.packed_.data() + (item % 2 * ranks + peer) * step.packed_size();
    }
    void produce(Index item) const {
      for (Rank peer = 0; at(peer) < step.rows_.count.size(); ++peer) {
        const Index columns = step.width(item, peer);
        const C* from = in + step.columns_.begin[at(peer)] * step.rest_ + item * step.tile_;
        C* to = packed(item, peer);
        if (columns == 0) continue;
        for (Index row = 0; row < step.rows_.count[step.me_]; ++row)
          std::copy_n(from + row * step.out_row(), columns, to + row * columns);
      }
    }
    std::span<const C> piece(Index item, Rank peer) const {
      return {packed(item, peer), at(step.rows_.count[step.me_] * step.width(item, peer))};
    }
    void consume(Index item, Rank peer, const C* data) const {
      const Index columns = step.width(item, static_cast<Rank>(step.me_));
      std::copy_n(data, step.rows_.count[at(peer)] * columns,
                  step.tile_in_.data() + step.rows_.begin[at(peer)] * columns);
    }
    void finish(Index item) const {
      const Index columns = step.width(item, static_cast<Rank>(step.me_));
      if (columns == 0) return;
      step.transform(Direction::backward, columns).run(step.tile_in_.data(), step.spectrum_.data());
      for (Index row = 0; row < step.rows_.total; ++row)
        copy(step.spectrum_.data() + row * columns, columns, out + row * step.own_size() + item * step.tile_);
    }
  };

  std::shared_ptr<Pipe> pipe_;
  Parts rows_, columns_;
  Index rest_;
  std::size_t me_;
  static constexpr Index tile_ = TileTransform<R>::best_width;
  Index items_;
  std::vector<TileTransform<R>> transforms_;  // forward: tile, rest; backward
  CacheBuffer<C> tile_in_, spectrum_, packed_;
};

}  // namespace

template <class R>
Index slab_slot(const SlabShape& slab) {
  const Parts rows(slab.rows), columns(slab.columns);
  return std::max(columns.largest * slab.rest, rows.largest * TileTransform<R>::best_width);
}

template <class T>
std::unique_ptr<FftStep<array::Real<T>>> planes_step(
    const std::shared_ptr<TilePipe<std::complex<array::Real<T>>>>& pipe, const SlabShape& slab,
    const Shape& plane, const std::vector<int>& axes, int halved) {
  return std::make_unique<PlanesStep<T>>(pipe, slab, plane, axes, halved);
}

template <class R>
std::unique_ptr<FftStep<R>> columns_step(const std::shared_ptr<TilePipe<std::complex<R>>>& pipe,
                                         const SlabShape& slab) {
  return std::make_unique<ColumnsStep<R>>(pipe, slab);
}

#define SHOAL_INSTANTIATE(R)                                                                             \
  template Index slab_slot<R>(const SlabShape&);                                                         \
  template std::unique_ptr<FftStep<R>> planes_step<R>(const std::shared_ptr<TilePipe<std::complex<R>>>&, \
                                                      const SlabShape&, const Shape&,                    \
                                                      const std::vector<int>&, int);                     \
  template std::unique_ptr<FftStep<R>> planes_step<std::complex<R>>(                                     \
      const std::shared_ptr<TilePipe<std::complex<R>>>&, const SlabShape&, const Shape&,                 \
      const std::vector<int>&, int);                                                                     \
  template std::unique_ptr<FftStep<R>> columns_step(const std::shared_ptr<TilePipe<std::complex<R>>>&,   \
                                                    const SlabShape&);
SHOAL_INSTANTIATE(float)
SHOAL_INSTANTIATE(double)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
