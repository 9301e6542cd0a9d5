// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/mdc.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "shoal/array/redistribution.h"
#include "shoal/base/error.h"
#include "shoal/linop/fft.h"
#include "shoal/linop/fredholm.h"

namespace shoal::linop {
namespace {

// Along the first axis that gives each rank a part without cutting time; else along time.
Layout default_layout(const Shape& shape, int ranks) {
  for (const int axis : {1, 2})
    if (shape[static_cast<std::size_t>(axis)] >= ranks) return Layout::split(shape, ranks, axis);
  return Layout::split(shape, ranks, 0);
}

Layout layout_of(const std::optional<Layout>& given, const Shape& shape, int ranks, const char* what) {
  if (!given) return default_layout(shape, ranks);
  if (given->is_stack() || given->shape() != shape || given->ranks() != ranks)
    fail(ErrorCode::invalid_argument, fmt::format("MDC: the {} is {} over {} ranks, but was given as {}",
                                                  what, array::to_string(shape), ranks, given->describe()));
  return *given;
}

// The first `count` slices times a factor; dropped ones are at the end, so each rank's part stays where it is
// or shrinks.
template <class C>
DistributedArray<C> first_slices(const DistributedArray<C>& kernel, Index count, Real<C> factor,
                                 bool conjugated) {
  const Layout& layout = kernel.layout();
  Shape shape = layout.shape();
  shape[0] = count;
  std::vector<Index> extents(layout.extents(0).begin(), layout.extents(0).end());
  Index left = count;
  for (Index& extent : extents) left -= extent = std::min(extent, left);
  DistributedArray<C> result(kernel.communicator(), Layout::split_unevenly(shape, extents),
                             array::uninitialised);
  const auto from = kernel.local().first(result.local().size());
  std::ranges::transform(from, result.local().begin(),
                         [&](const C& g) { return factor * (conjugated ? std::conj(g) : g); });
  return result;
}

template <class R>
void check(const DistributedArray<std::complex<R>>& kernel, const Mdc& options) {
  const Layout& layout = kernel.layout();
  if (layout.is_stack() || layout.axes() != 3 || layout.split_axis() != std::optional<int>(0))
    fail(ErrorCode::invalid_argument,
         fmt::format("MDC: the kernel is {}; it must be [frequencies, sources, receivers] split along axis 0",
                     layout.is_stack() ? std::string("a stack") : layout.describe()));
  if (options.nt < 1 || options.nv < 1)
    fail(ErrorCode::invalid_argument,
         fmt::format("MDC: {} samples of time and {} virtual sources; set nt and nv to 1 or more", options.nt,
                     options.nv));
  if (options.twosided && options.nt % 2 == 0)
    fail(ErrorCode::invalid_argument,
         fmt::format("MDC: two-sided with {} samples of time; their number must be odd", options.nt));
}

}  // namespace

template <class R>
AnyOperator<R> mdc(const DistributedArray<std::complex<R>>& kernel, const Mdc& options) {
  using C = std::complex<R>;
  check(kernel, options);
  const comm::Communicator& communicator = kernel.communicator();
  const Shape& g = kernel.layout().shape();
  const int ranks = communicator.size();
  const Index most = options.nt / 2 + 1, frequencies = std::min(g[0], most);
  if (frequencies < g[0] && communicator.rank() == 0)
    fmt::print(stderr,
               "shoal: warning: MDC drops {} of the kernel's {} frequencies; {} samples of time have {}\n",
               g[0] - frequencies, g[0], options.nt, most);
  const double factor =
      options.prescaled ? 1 : options.dr * options.dt * std::sqrt(static_cast<double>(options.nt));
  DistributedArray<C> scaled = first_slices(kernel, frequencies, static_cast<R>(factor), options.conjugated);
  const std::vector<Index> slices(scaled.layout().extents(0).begin(), scaled.layout().extents(0).end());

  const auto transform = [&](const Layout& layout, bool shift) -> AnyOperator<R, C> {
    Shape spectrum = layout.shape();
    spectrum[0] = frequencies;
    return Fft<R>(communicator, layout,
                  {.axes = {0},
                   .scale = FftScale::orthonormal,
                   .shift_before = {shift},
                   .bins = frequencies,
                   .range_layout = Layout::split_unevenly(spectrum, slices)});
  };
  const Layout model = layout_of(options.model, {options.nt, g[2], options.nv}, ranks, "model");
  const Layout data = layout_of(options.data, {options.nt, g[1], options.nv}, ranks, "data");
  const AnyOperator<C> apply_kernel = fredholm<C>(std::move(scaled), options.nv, Slices::split);
  return adjoint(transform(data, false)) * (apply_kernel * transform(model, options.twosided));
}

template AnyOperator<float> mdc(const DistributedArray<std::complex<float>>&, const Mdc&);
template AnyOperator<double> mdc(const DistributedArray<std::complex<double>>&, const Mdc&);

}  // namespace shoal::linop
