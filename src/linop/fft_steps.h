// SPDX-License-Identifier: Apache-2.0
// The steps of a distributed transform, each from one piece of memory to another, in both directions.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "linop/axis_pieces.h"
#include "linop/block_transform.h"
#include "shoal/array/redistribution.h"

namespace shoal::linop {

using array::Layout;

template <class R>
class FftStep {
 public:
  FftStep(Index in_bytes, Index out_bytes) : in_bytes_(in_bytes), out_bytes_(out_bytes) {}
  virtual ~FftStep() = default;
  FftStep(const FftStep&) = delete;
  FftStep& operator=(const FftStep&) = delete;
  Index in_bytes() const { return in_bytes_; }
  Index out_bytes() const { return out_bytes_; }
  /// Whether the forward direction communicates.
  virtual bool redistributes() const { return false; }
  /// `scale` is for one of the steps, which applies it to the spectrum.
  virtual void forward(const void* in, void* out, SpectrumScale<R> scale) = 0;
  virtual void backward(const void* in, void* out, SpectrumScale<R> scale) = 0;

 private:
  Index in_bytes_, out_bytes_;
};

template <class R>
using FftSteps = std::vector<std::unique_ptr<FftStep<R>>>;

template <class T>
Index bytes_of(Index elements) {
  return elements * static_cast<Index>(sizeof(T));
}

/// Of elements T from one layout to another, and back.
template <class T>
class RedistributionStep final : public FftStep<array::Real<T>> {
 public:
  RedistributionStep(const comm::Communicator& communicator, const Layout& from, const Layout& to)
      : FftStep<array::Real<T>>(bytes_of<T>(from.local_size(communicator.rank())),
                                bytes_of<T>(to.local_size(communicator.rank()))),
        communicator_(communicator),
        from_(from),
        to_(to),
        there_(communicator, from, to),
        back_(communicator, to, from) {}
  bool redistributes() const override { return !from_.is_replicated(); }
  void forward(const void* in, void* out, SpectrumScale<array::Real<T>>) override {
    run(there_, in, from_, out, to_);
  }
  void backward(const void* in, void* out, SpectrumScale<array::Real<T>>) override {
    run(back_, in, to_, out, from_);
  }

 private:
  void run(array::Redistribution<T>& way, const void* in, const Layout& from, void* out, const Layout& to) {
    array::DistributedArray<T> result = view(out, to);
    way.run(view(const_cast<void*>(in), from), result);
  }
  // An array needs memory that can be written to; the input is not.
  array::DistributedArray<T> view(void* memory, const Layout& layout) const {
    return array::DistributedArray<T>::adopt(
        communicator_, layout,
        {static_cast<T*>(memory), static_cast<std::size_t>(layout.local_size(communicator_.rank()))});
  }
  comm::Communicator communicator_;
  Layout from_, to_;
  array::Redistribution<T> there_, back_;
};

/// Shifts, padding and cutting.
template <class T>
class MapStep final : public FftStep<array::Real<T>> {
 public:
  explicit MapStep(const BlockMap& map)
      : FftStep<array::Real<T>>(bytes_of<T>(array::size_of_shape(map.from_shape())),
                                bytes_of<T>(array::size_of_shape(map.to_shape()))),
        there_(map),
        back_(map.reversed()) {}
  void forward(const void* in, void* out, SpectrumScale<array::Real<T>>) override {
    there_.run(static_cast<const T*>(in), static_cast<T*>(out));
  }
  void backward(const void* in, void* out, SpectrumScale<array::Real<T>>) override {
    back_.run(static_cast<const T*>(in), static_cast<T*>(out));
  }

 private:
  BlockMap there_, back_;
};

/// From elements T (real or complex) to complex ones.
template <class T>
class TransformStep final : public FftStep<array::Real<T>> {
 public:
  using R = array::Real<T>;
  using C = std::complex<R>;
  TransformStep(const Shape& in, const Shape& out, const std::vector<int>& axes, int halved, bool scales)
      : FftStep<R>(bytes_of<T>(array::size_of_shape(in)), bytes_of<C>(array::size_of_shape(out))),
        transform_(in, axes, halved),
        scales_(scales) {}
  void forward(const void* in, void* out, SpectrumScale<R> scale) override {
    transform_.forward(static_cast<const T*>(in), static_cast<C*>(out), scales_ ? scale : SpectrumScale<R>{});
  }
  void backward(const void* in, void* out, SpectrumScale<R> scale) override {
    transform_.backward(static_cast<const C*>(in), static_cast<T*>(out),
                        scales_ ? scale : SpectrumScale<R>{});
  }

 private:
  BlockTransform<R> transform_;
  bool scales_;
};

/// Of an array of one axis: length = rows times columns.
struct LineFactors {
  Index rows, columns;
};
/// Such that rows can be shared out on either side; none where that does not pay.
std::optional<LineFactors> line_factors(const Layout& domain, const Layout& range);

/// The transform of one split axis by the six-step algorithm; D is its real or complex element type.
/// The halved spectrum of reals is cut from the whole one, so its scale is the same in both directions.
template <class D>
FftSteps<array::Real<D>> line_steps(const comm::Communicator& communicator, const Layout& domain,
                                    const Layout& range, LineFactors factors, bool shift_before,
                                    bool shift_after);

}  // namespace shoal::linop
