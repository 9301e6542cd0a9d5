// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/local/spread.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::linop::local {

template <class T>
Spread<T>::Spread(Index points, Index traces, Index samples, std::vector<float> times)
    : points_(points), traces_(traces), samples_(samples) {
  const Index extents[] = {points, traces};
  if (samples < 1 || static_cast<Index>(times.size()) != array::size_of_shape(extents))
    fail(ErrorCode::invalid_argument,
         fmt::format("spread: {} times for {} points and {} traces of {} samples", times.size(), points,
                     traces, samples));
  times_ = std::make_shared<const std::vector<float>>(std::move(times));
}

namespace {

// The sample at or below `time` and the share of the one above; false where the curve leaves the trace.
bool place_of(float time, Index samples, Index& sample, float& share) {
  if (!(time >= 0) || time > static_cast<double>(samples - 1)) return false;  // a float would round
  sample = static_cast<Index>(time);
  share = time - static_cast<float>(sample);
  return true;
}

}  // namespace

template <class T>
void Spread<T>::apply(std::span<const T> x, std::span<T> y) const {
  using Weight = decltype(std::abs(T{}));
  std::fill(y.begin(), y.end(), T{});
  const float* time = times_->data();
  for (Index p = 0; p < points_; ++p)
    for (Index trace = 0; trace < traces_; ++trace, ++time) {
      Index sample;
      float share;
      if (!place_of(*time, samples_, sample, share)) continue;
      T* const out = y.data() + trace * samples_ + sample;
      const T value = x[static_cast<std::size_t>(p)];
      out[0] += static_cast<Weight>(1 - share) * value;
      if (share > 0) out[1] += static_cast<Weight>(share) * value;
    }
}

template <class T>
void Spread<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  using Weight = decltype(std::abs(T{}));
  const float* time = times_->data();
  for (Index p = 0; p < points_; ++p) {
    T sum{};
    for (Index trace = 0; trace < traces_; ++trace, ++time) {
      Index sample;
      float share;
      if (!place_of(*time, samples_, sample, share)) continue;
      const T* const in = y.data() + trace * samples_ + sample;
      sum += static_cast<Weight>(1 - share) * in[0];
      if (share > 0) sum += static_cast<Weight>(share) * in[1];
    }
    x[static_cast<std::size_t>(p)] = sum;
  }
}

std::vector<float> travel_times(Index nx, Index nz, double step, Position source,
                                std::span<const Position> receivers, double velocity, double dt) {
  std::vector<float> times;
  times.reserve(static_cast<std::size_t>(nx * nz) * receivers.size());
  for (Index i = 0; i < nx; ++i)
    for (Index j = 0; j < nz; ++j) {
      const double x = static_cast<double>(i) * step, z = static_cast<double>(j) * step;
      const double down = std::hypot(x - source.x, z - source.z);
      for (const Position& receiver : receivers)
        times.push_back(
            static_cast<float>((down + std::hypot(x - receiver.x, z - receiver.z)) / velocity / dt));
    }
  return times;
}

template class Spread<float>;
template class Spread<double>;
template class Spread<std::complex<float>>;
template class Spread<std::complex<double>>;

}  // namespace shoal::linop::local
