// SPDX-License-Identifier: Apache-2.0
// Post-stack seismic modelling: the reflectivity of a layered earth, convolved with a wavelet.
#pragma once

#include <span>
#include <vector>

#include "shoal/linop/local/lines.h"

namespace shoal::linop::local {

/// d = W D m along the time axis: m is the logarithm of the acoustic impedance, D the first derivative (its
/// rows at the ends are zero), W the convolution with the wavelet, centred on its middle. (pylops:
/// PoststackLinearModelling.)
template <class T>
class PoststackModelling {
 public:
  using value_type = T;
  enum class Derivative : std::uint8_t { centered, forward };
  PoststackModelling(Shape dims, std::vector<T> wavelet, int time_axis = -1,
                     Derivative derivative = Derivative::centered);
  Index rows() const { return lines_.size(); }
  Index cols() const { return lines_.size(); }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Lines lines_;
  std::vector<T> wavelet_, adjoint_wavelet_;
  Derivative derivative_;
};

/// Ricker wavelet of peak frequency `frequency` (Hz) at 2 * half + 1 samples, `dt` seconds apart.
std::vector<double> ricker(Index half, double dt, double frequency);

}  // namespace shoal::linop::local
