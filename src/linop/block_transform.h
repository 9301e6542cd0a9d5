// SPDX-License-Identifier: Apache-2.0
// Transforms over several axes of a block of memory, in as few trips to memory as its size allows: the last
// axes together as long as they fit the second-level cache, each axis further out in tiles of columns. FFTW
// does one axis at a time: the plans that it makes of several by estimate are slow for lengths of 2^n.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "linop/cache_buffer.h"
#include "linop/fftw_plan.h"
#include "shoal/array/layout.h"

namespace shoal::linop {

using array::Index;
using array::Shape;

/// Factors of a spectrum: `edge` for frequency 0 and the highest of an even length along the halved axis,
/// `inner` for the others. Of complex transforms both are equal.
template <class R>
struct SpectrumScale {
  R edge = 1, inner = 1;
  bool is_one() const { return edge == 1 && inner == 1; }
};

template <class R>
class BlockTransform {
 public:
  using C = std::complex<R>;
  /// `shape` before the forward transform; along `halved` (one of the axes; -1: none) n reals become n / 2 +
  /// 1 complex numbers.
  BlockTransform(const Shape& shape, const std::vector<int>& axes, int halved);
  ~BlockTransform();
  BlockTransform(BlockTransform&&) noexcept;

  // Out of place. The first two without, the others with a halved axis. Unscaled but for `scale`, which the
  // spectrum is multiplied by.
  void forward(const C* in, C* out, SpectrumScale<R> scale) const;
  void backward(const C* in, C* out, SpectrumScale<R> scale) const;
  void forward(const R* in, C* out, SpectrumScale<R> scale) const;
  void backward(const C* in, R* out, SpectrumScale<R> scale) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace shoal::linop
