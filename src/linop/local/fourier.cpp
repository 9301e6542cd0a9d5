// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/local/fourier.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "linop/fftw_plan.h"
#include "shoal/base/error.h"

namespace shoal::linop::local {

template <class T>
struct Fft<T>::Plans {
  using Real = typename T::value_type;
  FftPlan<Real> forward, backward;
  Real factor;
};

template <class T>
Fft<T>::Fft(Shape dims, std::vector<int> axes, FftScale scale) : size_(array::size_of_shape(dims)) {
  using Real = typename T::value_type;
  const int count = static_cast<int>(dims.size());
  std::vector<FftAxis> transformed, repeated;
  std::vector<bool> used(dims.size());
  double n = 1;
  const auto stride_of = [&](int axis) {
    Index stride = 1;
    for (int i = axis + 1; i < count; ++i) stride *= dims[static_cast<std::size_t>(i)];
    return stride;
  };
  for (const int given : axes) {
    const int axis = given < 0 ? given + count : given;
    if (axis < 0 || axis >= count || used[static_cast<std::size_t>(axis)])
      fail(ErrorCode::invalid_argument, fmt::format("FFT: axis {} of an array of {} axes", given, count));
    used[static_cast<std::size_t>(axis)] = true;
    transformed.push_back({dims[static_cast<std::size_t>(axis)], stride_of(axis), stride_of(axis)});
    n *= static_cast<double>(dims[static_cast<std::size_t>(axis)]);
  }
  for (int axis = 0; axis < count; ++axis)
    if (!used[static_cast<std::size_t>(axis)])
      repeated.push_back({dims[static_cast<std::size_t>(axis)], stride_of(axis), stride_of(axis)});
  const double factor = n == 0 || scale == FftScale::none ? 1
                        : scale == FftScale::one_over_n   ? 1 / n
                                                          : 1 / std::sqrt(n);
  plans_ = std::make_shared<const Plans>(Plans{FftPlan<Real>::complex_forward(transformed, repeated),
                                               FftPlan<Real>::complex_backward(transformed, repeated),
                                               static_cast<Real>(factor)});
}

namespace {

template <class T>
void scale_all(std::span<T> y, typename T::value_type factor) {
  if (factor == 1) return;
  for (T& v : y) v *= factor;
}

}  // namespace

template <class T>
void Fft<T>::apply(std::span<const T> x, std::span<T> y) const {
  plans_->forward.run(x.data(), y.data());
  scale_all(y, plans_->factor);
}

template <class T>
void Fft<T>::apply_adjoint(std::span<const T> y, std::span<T> x) const {
  plans_->backward.run(y.data(), x.data());
  scale_all(x, plans_->factor);
}

template class Fft<std::complex<float>>;
template class Fft<std::complex<double>>;

}  // namespace shoal::linop::local
