// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform of complex arrays that lie on one rank (FFTW).
#pragma once

#include <complex>
#include <memory>
#include <span>
#include <vector>

#include "shoal/array/layout.h"

namespace shoal::linop::local {

using array::Index;
using array::Shape;

/// Which factor the forward transform takes (N: product of the transformed lengths). The adjoint takes the
/// same.
enum class FftScale : std::uint8_t {
  none,         // 1; the adjoint is N times the inverse
  one_over_n,   // 1/N
  orthonormal,  // 1/sqrt(N); the adjoint is the inverse
};

/// T is complex. Transforms the given axes of an array of shape `dims`.
template <class T>
class Fft {
 public:
  using value_type = T;
  Fft(Shape dims, std::vector<int> axes, FftScale scale = FftScale::orthonormal);
  Index rows() const { return size_; }
  Index cols() const { return size_; }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  struct Plans;
  Index size_;
  std::shared_ptr<const Plans> plans_;
};

}  // namespace shoal::linop::local
