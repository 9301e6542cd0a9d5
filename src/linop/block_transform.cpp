// SPDX-License-Identifier: Apache-2.0
#include "linop/block_transform.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "linop/panel_rows.h"
#include "linop/real_dft.h"
#include "linop/streaming_copy.h"
#include "linop/tile_transform.h"

namespace shoal::linop {
namespace {

// What a chunk of several axes may take of the second-level cache.
constexpr Index chunk_bytes = Index{1} << 20;
// Chunks and rows of this size are worth a call of their own; smaller ones go several at a time.
constexpr Index batch_bytes = Index{16} << 10;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

Index product(const Shape& shape, std::size_t begin, std::size_t end) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(begin),
                         shape.begin() + static_cast<std::ptrdiff_t>(end), Index{1}, std::multiplies<>());
}

template <class C>
Index bytes(Index elements) {
  return elements * static_cast<Index>(sizeof(C));
}

// Rows so far apart fall into few sets of the first-level cache, and into a page each.
bool conflicts(Index stride_bytes) { return std::gcd(stride_bytes, Index{4096}) >= 512; }

/// A transform along the last axis, `count` rows.
template <class R>
class Rows {
 public:
  using C = std::complex<R>;
  Rows(Index count, Index n_in, Index n_out, bool halved)
      : count_(count), n_in_(n_in), n_out_(n_out), halved_(halved) {
    if (PanelRows<R>::takes(n_in, halved)) {
      panels_.emplace(count, n_in, halved);
      return;
    }
    batch_ = std::clamp<Index>(batch_bytes / std::max<Index>(bytes<C>(n_out), 1), 1, 32);
    for (const Direction direction : {Direction::forward, Direction::backward})
      for (const Index rows : {batch_, count % batch_}) {
        const FftAxis there{rows, n_in, n_out}, back{rows, n_out, n_in};
        plans_.push_back(make_plan<R>(direction, halved, {{n_in, 1, 1}},
                                      {direction == Direction::forward ? there : back}));
      }
    buffer_.emplace(at(batch_ * n_out));
  }

  // Complex; `from` may be `to`.
  void run(Direction direction, const C* from, C* to, SpectrumScale<R> scale) const {
    if (panels_) return panels_->run(direction, from, to, scale.inner);
    for_each(direction, [&](const FftPlan<R>& plan, Index row, Index rows) {
      C* const result = to + row * n_out_;
      plan.run(from + row * n_in_, from == to ? buffer_->data() : result);
      if (from == to) std::copy_n(buffer_->data(), rows * n_out_, result);
      multiply(result, rows, scale);
    });
  }
  void halve(const R* from, C* to, SpectrumScale<R> scale) const {
    if (panels_) return panels_->halve(from, to, scale);
    for_each(Direction::forward, [&](const FftPlan<R>& plan, Index row, Index rows) {
      plan.run(from + row * n_in_, to + row * n_out_);
      multiply(to + row * n_out_, rows, scale);
    });
  }
  void unhalve(const C* from, R* to, SpectrumScale<R> scale) const {
    if (panels_) return panels_->unhalve(from, to, scale);
    for_each(Direction::backward, [&](const FftPlan<R>& plan, Index row, Index rows) {
      std::copy_n(from + row * n_out_, rows * n_out_, buffer_->data());
      multiply(buffer_->data(), rows, scale);
      plan.run(buffer_->data(), to + row * n_in_);
    });
  }

 private:
  template <class Visit>
  void for_each(Direction direction, const Visit& visit) const {
    const std::size_t first = direction == Direction::forward ? 0 : 2;
    for (Index row = 0; row < count_; row += batch_) {
      const Index rows = std::min(batch_, count_ - row);
      visit(plans_[rows == batch_ ? first : first + 1], row, rows);
    }
  }
  void multiply(C* y, Index rows, SpectrumScale<R> scale) const {
    if (scale.is_one()) return;
    for (Index row = 0; row < rows; ++row, y += n_out_) {
      for (Index k = 0; k < n_out_; ++k) y[k] *= scale.inner;
      if (!halved_) continue;
      y[0] *= scale.edge / scale.inner;
      if (n_in_ % 2 == 0) y[n_in_ / 2] *= scale.edge / scale.inner;
    }
  }
  Index count_, n_in_, n_out_, batch_ = 1;
  bool halved_;
  std::optional<PanelRows<R>> panels_;
  std::vector<FftPlan<R>> plans_;  // else, forward: batch, rest; backward
  std::optional<CacheBuffer<C>> buffer_;
};

/// A transform along an axis that is not the last, by tiles of neighbouring columns, whose rows are copied to
/// and from the block.
template <class R>
class Columns {
 public:
  using C = std::complex<R>;
  Columns(Index outer, Index n_in, Index n_out, Index inner, bool halved)
      : outer_(outer),
        n_in_(n_in),
        n_out_(n_out),
        inner_(inner),
        tile_(std::max<Index>(std::min(TileTransform<R>::best_width, inner), 1)),
        halved_(halved),
        own_(!halved && ColumnFft<R>::takes(n_in)),
        copies_in_(halved || (own_ ? bytes<C>(n_in * inner) > 2 * chunk_bytes : conflicts(bytes<C>(inner)))),
        in_tile_(at(n_in * tile_)),
        out_tile_(at(n_in * tile_)) {
    if (halved && RealDft<R>::pays(n_in)) {
      products_.emplace(n_in);
      return;
    }
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      if (own_) {
        panels_.emplace_back(direction, n_in);
        continue;
      }
      for (const Index width : {tile_, inner % tile_})
        transforms_.emplace_back(direction, halved, n_in, copies_in_ ? width : inner, width, width);
    }
  }

  // Complex; `from` may be `to`.
  void run(Direction direction, const C* from, C* to, SpectrumScale<R> scale) const {
    // What is written in place is in the caches already.
    const bool streams = from != to && at(outer_ * n_out_ * inner_) * sizeof(C) >= streaming_bytes;
    for_each_tile([&](Index in, Index out, Index width) {
      const C* source = from + in;
      Index stride = inner_;
      if (copies_in_) {
        copy_rows(source, inner_, in_tile_.data(), width, n_in_, width);
        source = in_tile_.data();
        stride = width;
      }
      if (own_ && !streams)
        return panels_[direction == Direction::forward ? 0 : 1].run_columns(source, stride, to + out, inner_,
                                                                            width, scale.inner);
      if (own_) {
        panels_[direction == Direction::forward ? 0 : 1].run_columns(source, stride, out_tile_.data(), width,
                                                                     width, scale.inner);
      } else {
        transform(direction, width).run(source, out_tile_.data());
        multiply(out_tile_.data(), width, scale);
      }
      if (!streams) return copy_rows(out_tile_.data(), width, to + out, inner_, n_out_, width);
      for (Index k = 0; k < n_out_; ++k)
        copy_streaming(out_tile_.data() + k * width, to + out + k * inner_, at(width) * sizeof(C));
    });
    if (streams) array::simd::end_streaming();
  }
  void halve(const R* from, C* to, SpectrumScale<R> scale) const {
    if (products_) {
      for (Index o = 0; o < outer_; ++o)
        products_->forward(from + o * n_in_ * inner_, inner_, to + o * n_out_ * inner_, inner_, inner_,
                           scale);
      return;
    }
    for_each_tile([&](Index in, Index out, Index width) {
      copy_rows(from + in, inner_, reals(), width, n_in_, width);
      transform(Direction::forward, width).run(static_cast<const R*>(reals()), out_tile_.data());
      multiply(out_tile_.data(), width, scale);
      copy_rows(out_tile_.data(), width, to + out, inner_, n_out_, width);
    });
  }
  void unhalve(const C* from, R* to, SpectrumScale<R> scale) const {
    if (products_) {
      for (Index o = 0; o < outer_; ++o)
        products_->backward(from + o * n_out_ * inner_, inner_, to + o * n_in_ * inner_, inner_, inner_,
                            scale);
      return;
    }
    for_each_tile([&](Index in, Index out, Index width) {
      copy_rows(from + out, inner_, out_tile_.data(), width, n_out_, width);
      multiply(out_tile_.data(), width, scale);
      transform(Direction::backward, width).run(out_tile_.data(), reals());
      copy_rows(static_cast<const R*>(reals()), width, to + in, inner_, n_in_, width);
    });
  }

 private:
  // visit(where the tile begins before, and after, columns)
  template <class Visit>
  void for_each_tile(const Visit& visit) const {
    for (Index o = 0; o < outer_; ++o)
      for (Index c = 0; c < inner_; c += tile_)
        visit(o * n_in_ * inner_ + c, o * n_out_ * inner_ + c, std::min(tile_, inner_ - c));
  }
  const TileTransform<R>& transform(Direction direction, Index width) const {
    return transforms_[(direction == Direction::forward ? 0 : 2) + (width == tile_ ? 0 : 1)];
  }
  template <class T>
  static void copy_rows(const T* from, Index from_stride, T* to, Index to_stride, Index rows, Index width) {
    for (Index k = 0; k < rows; ++k) std::copy_n(from + k * from_stride, width, to + k * to_stride);
  }
  void multiply(C* tile, Index width, SpectrumScale<R> scale) const {
    if (scale.is_one()) return;
    for (Index k = 0; k < n_out_; ++k) {
      const R factor = halved_ && (k == 0 || 2 * k == n_in_) ? scale.edge : scale.inner;
      for (Index c = 0; c < width; ++c) tile[k * width + c] *= factor;
    }
  }
  // Complex numbers are pairs of reals in memory.
  R* reals() const { return reinterpret_cast<R*>(in_tile_.data()); }

  Index outer_, n_in_, n_out_, inner_, tile_;
  bool halved_, own_, copies_in_;
  CacheBuffer<C> in_tile_, out_tile_;
  std::vector<ColumnFft<R>> panels_;          // forward, backward: where there is our own for the length
  std::vector<TileTransform<R>> transforms_;  // else, forward: tile, rest; backward
  std::optional<RealDft<R>> products_;        // instead, for some lengths
};

/// All passes over one block: with a halved axis first that of reals, then the others in place.
template <class R>
class Passes {
 public:
  using C = std::complex<R>;
  using Scale = SpectrumScale<R>;
  Passes(const Shape& in, const Shape& out, const std::vector<int>& axes, int halved) {
    const std::size_t last = in.size() - 1;
    for (std::size_t a = in.size(); a-- > 0;) {  // the last axis first: its rows are as they lie in memory
      const bool half = halved >= 0 && at(halved) == a;
      if (!half && std::ranges::find(axes, static_cast<int>(a)) == axes.end()) continue;
      // When an axis is halved that is first, the others find its length already changed.
      const Shape& before = half ? in : out;
      if (a == last)
        (half ? half_rows_ : rows_).emplace(product(out, 0, last), before[a], out[a], half);
      else if (half)
        half_columns_.emplace(product(out, 0, a), in[a], out[a], product(out, a + 1, out.size()), true);
      else
        columns_.emplace_back(product(out, 0, a), out[a], out[a], product(out, a + 1, out.size()), false);
    }
  }
  bool has_half() const { return half_rows_ || half_columns_; }
  bool has_complex() const { return rows_ || !columns_.empty(); }

  void complex(Direction direction, const C* from, C* to, Scale scale) const {
    if (rows_) {
      rows_->run(direction, from, to, scale);
      from = to;
      scale = {};
    }
    for (const Columns<R>& pass : columns_) {
      pass.run(direction, from, to, scale);
      from = to;
      scale = {};
    }
  }
  void halve(const R* from, C* to, Scale scale) const {
    if (half_rows_)
      half_rows_->halve(from, to, scale);
    else
      half_columns_->halve(from, to, scale);
  }
  void unhalve(const C* from, R* to, Scale scale) const {
    if (half_rows_)
      half_rows_->unhalve(from, to, scale);
    else
      half_columns_->unhalve(from, to, scale);
  }

 private:
  std::optional<Rows<R>> half_rows_, rows_;
  std::optional<Columns<R>> half_columns_;
  std::vector<Columns<R>> columns_;
};

}  // namespace

// Chunks of the last axes are transformed one after the other, then the axes further out over the block.
template <class R>
struct BlockTransform<R>::Plan {
  using Scale = SpectrumScale<R>;
  Index count = 0, batch = 1;           // chunks, and how many at a time
  Index in_size = 0, out_size = 0;      // of a chunk
  Index size = 0;                       // of the spectrum
  std::vector<linop::Passes<R>> inner;  // of `batch` chunks, and of the rest
  std::optional<linop::Passes<R>> outer;
  mutable std::optional<CacheBuffer<C>> between;  // spectra on the way back, whole or of chunks
  std::optional<CacheBuffer<C>> cached;  // chunks that are then stored past the caches, if spectra are large

  Plan(const Shape& shape, const std::vector<int>& axes, int halved) {
    Shape spectrum = shape;
    if (halved >= 0) spectrum[at(halved)] = shape[at(halved)] / 2 + 1;
    size = array::size_of_shape(spectrum);
    std::size_t first = shape.size() - 1;
    Index chunk = bytes<C>(spectrum[first]);
    while (first > 0 && chunk * spectrum[first - 1] <= chunk_bytes) chunk *= spectrum[--first];
    // What lies before the axes of a chunk counts chunks there, and is whole further out.
    const bool half_inside = halved >= 0 && at(halved) >= first;
    std::vector<int> inside, outside;
    for (const int axis : axes) {
      if (at(axis) < first)
        outside.push_back(axis);
      else
        inside.push_back(axis - static_cast<int>(first) + 1);
    }
    const Shape inner_in = chunk_shape(half_inside ? shape : spectrum, first),
                inner_out = chunk_shape(spectrum, first);
    count = product(spectrum, 0, first);
    in_size = product(inner_in, 1, inner_in.size());
    out_size = product(inner_out, 1, inner_out.size());
    batch =
        std::clamp<Index>(batch_bytes / std::max<Index>(bytes<C>(out_size), 1), 1, std::max<Index>(count, 1));
    const int inner_half = half_inside ? halved - static_cast<int>(first) + 1 : -1;
    for (const Index chunks : {batch, count % batch}) {
      Shape in = inner_in, out = inner_out;
      in[0] = out[0] = chunks;
      inner.emplace_back(in, out, inside, inner_half);
    }
    if (count > batch && at(size) * sizeof(C) >= streaming_bytes) cached.emplace(at(batch * out_size));
    if (!outside.empty())
      outer.emplace(half_inside ? spectrum : shape, spectrum, outside, half_inside ? -1 : halved);
  }

  static Shape chunk_shape(const Shape& shape, std::size_t first) {
    Shape chunk{1};
    chunk.insert(chunk.end(), shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end());
    return chunk;
  }

  // visit(passes, where the chunks begin in the input, and in the spectrum)
  template <class Visit>
  void for_each_chunk(const Visit& visit) const {
    for (Index i = 0; i < count; i += batch)
      visit(inner[count - i >= batch ? 0 : 1], i * in_size, i * out_size);
  }
  // visit(passes, where the chunks begin in the input, and in the spectrum, where to transform them to)
  template <class Visit>
  void transform_chunks(bool out_of_place, C* to, const Visit& visit) const {
    const bool streams = cached && out_of_place;
    for_each_chunk([&](const linop::Passes<R>& passes, Index at_input, Index at_spectrum) {
      visit(passes, at_input, at_spectrum, streams ? cached->data() : to + at_spectrum);
      if (streams)
        copy_streaming(cached->data(), to + at_spectrum,
                       at(std::min(batch * out_size, size - at_spectrum)) * sizeof(C));
    });
    if (streams) array::simd::end_streaming();
  }
  bool outer_half() const { return outer && outer->has_half(); }
  bool inner_complex() const { return inner[0].has_complex(); }

  // All complex passes; returns where the result is: in `to`, or in `from` where there is nothing to do.
  const C* complex(Direction direction, const C* from, C* to, Scale scale) const {
    if (inner_complex()) {
      transform_chunks(from != to, to, [&](const linop::Passes<R>& passes, Index, Index at_spectrum, C* out) {
        passes.complex(direction, from + at_spectrum, out, scale);
      });
      from = to;
      scale = {};
    }
    if (outer && outer->has_complex()) {
      outer->complex(direction, from, to, scale);
      from = to;
    }
    return from;
  }

  void halve(const R* from, C* to, Scale scale) const {
    if (outer_half()) {
      outer->halve(from, to, scale);
      complex(Direction::forward, to, to, {});
      return;
    }
    transform_chunks(true, to, [&](const linop::Passes<R>& passes, Index at_reals, Index, C* out) {
      passes.halve(from + at_reals, out, scale);
      passes.complex(Direction::forward, out, out, {});
    });
    if (outer) outer->complex(Direction::forward, to, to, {});
  }

  void unhalve(const C* from, R* to, Scale scale) const {
    const bool all = outer && (outer->has_complex() || inner_complex());
    if (!between && (all || inner_complex())) between.emplace(at(all ? size : batch * out_size));
    if (outer_half()) {
      outer->unhalve(all ? complex(Direction::backward, from, between->data(), {}) : from, to, scale);
      return;
    }
    if (outer) {
      outer->complex(Direction::backward, from, between->data(), {});
      from = between->data();
    }
    for_each_chunk([&](const linop::Passes<R>& passes, Index at_reals, Index at_spectrum) {
      const C* spectrum = from + at_spectrum;
      if (passes.has_complex()) {
        C* const target = outer ? between->data() + at_spectrum : between->data();
        passes.complex(Direction::backward, spectrum, target, {});
        spectrum = target;
      }
      passes.unhalve(spectrum, to + at_reals, scale);
    });
  }
};

template <class R>
BlockTransform<R>::BlockTransform(const Shape& shape, const std::vector<int>& axes, int halved)
    : plan_(std::make_unique<Plan>(shape, axes, halved)) {}
template <class R>
BlockTransform<R>::~BlockTransform() = default;
template <class R>
BlockTransform<R>::BlockTransform(BlockTransform&&) noexcept = default;

template <class R>
void BlockTransform<R>::forward(const C* in, C* out, SpectrumScale<R> scale) const {
  plan_->complex(Direction::forward, in, out, scale);
}
template <class R>
void BlockTransform<R>::backward(const C* in, C* out, SpectrumScale<R> scale) const {
  plan_->complex(Direction::backward, in, out, scale);
}
template <class R>
void BlockTransform<R>::forward(const R* in, C* out, SpectrumScale<R> scale) const {
  plan_->halve(in, out, scale);
}
template <class R>
void BlockTransform<R>::backward(const C* in, R* out, SpectrumScale<R> scale) const {
  plan_->unhalve(in, out, scale);
}

template class BlockTransform<float>;
template class BlockTransform<double>;

}  // namespace shoal::linop
