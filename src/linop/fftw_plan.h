// SPDX-License-Identifier: Apache-2.0
// FFTW plans for float and double, as values.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace shoal::linop {

/// One axis of a transform or of its repetition: length, and strides in elements of input and output.
struct FftAxis {
  std::int64_t length, in_stride, out_stride;
};

/// Transforms over `axes`, repeated over `batch`, out of place. Real is float or double. Unscaled. Planning
/// is quick and always gives the same plan (FFTW_ESTIMATE), so results have the same bits in every run.
template <class Real>
class FftPlan {
 public:
  using Complex = std::complex<Real>;
  static FftPlan complex_forward(std::vector<FftAxis> axes, std::vector<FftAxis> batch);
  static FftPlan complex_backward(std::vector<FftAxis> axes, std::vector<FftAxis> batch);
  /// Along the last of `axes` n reals become n / 2 + 1 complex numbers; strides count reals and complex
  /// numbers.
  static FftPlan real_forward(std::vector<FftAxis> axes, std::vector<FftAxis> batch);
  /// n / 2 + 1 complex numbers become n reals, n being the length of the last axis. Overwrites its input when
  /// there is more than one axis.
  static FftPlan real_backward(std::vector<FftAxis> axes, std::vector<FftAxis> batch);

  void run(const Complex* in, Complex* out) const;
  void run(const Real* in, Complex* out) const;
  void run(Complex* in, Real* out) const;

 private:
  enum class Kind : std::uint8_t { forward, backward, real_forward, real_backward };
  struct Handle;
  FftPlan(Kind kind, std::vector<FftAxis> axes, std::vector<FftAxis> batch);
  std::shared_ptr<const Handle> handle_;
};

}  // namespace shoal::linop
