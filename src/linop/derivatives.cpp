// SPDX-License-Identifier: Apache-2.0
// Which differences along which axes make up each derivative.
#include "shoal/linop/derivatives.h"

#include <algorithm>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "linop/stencil_operator.h"
#include "shoal/base/error.h"

namespace shoal::linop {
namespace {

Index extent(const Layout& layout, int axis) { return layout.shape()[static_cast<std::size_t>(axis)]; }

// One value for each axis: those given, or ones.
std::vector<double> values_for(const char* what, const std::vector<double>& given, std::size_t axes) {
  if (given.empty()) return std::vector<double>(axes, 1.0);
  if (given.size() != axes)
    fail(ErrorCode::invalid_argument,
         fmt::format("{} has {} values for {} axes; give one for each, or none", what, given.size(), axes));
  return given;
}

std::vector<StencilTerm> laplacian_terms(const Layout& layout, const Laplacian& options) {
  const std::size_t count = options.axes.size();
  if (count == 0) fail(ErrorCode::invalid_argument, "a Laplacian needs at least one axis; it was given none");
  const std::vector<double> weights = values_for("weights of a Laplacian", options.weights, count);
  const std::vector<double> sampling = values_for("sampling of a Laplacian", options.sampling, count);
  std::vector<StencilTerm> terms;
  for (std::size_t i = 0; i < count; ++i) {
    const int axis = checked_axis(layout, options.axes[i]);
    for (const StencilTerm& other : terms)
      if (other.axis == axis)
        fail(ErrorCode::invalid_argument,
             fmt::format("a Laplacian was given axis {} twice; sum its weights", axis));
    const SecondDerivative along{.kind = options.kind, .edge = options.edge, .sampling = sampling[i]};
    terms.push_back({.axis = axis, .band = second_derivative_band(extent(layout, axis), along, weights[i])});
  }
  // So that results do not depend on the order in which the axes are given.
  std::ranges::sort(terms, {}, &StencilTerm::axis);
  return terms;
}

std::vector<StencilTerm> gradient_terms(const Layout& layout, const Gradient& options) {
  const int axes = layout.axes();
  if (axes == 0) fail(ErrorCode::invalid_argument, "an array without axes has no gradient");
  const std::vector<double> sampling =
      values_for("sampling of a gradient", options.sampling, static_cast<std::size_t>(axes));
  std::vector<StencilTerm> terms;
  for (int axis = 0; axis < axes; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const FirstDerivative along{.kind = options.kind, .edge = options.edge, .sampling = sampling[i]};
    terms.push_back({.output = i, .axis = axis, .band = first_derivative_band(extent(layout, axis), along)});
  }
  return terms;
}

}  // namespace

template <class T>
AnyOperator<T> first_derivative(const comm::Communicator& communicator, const Layout& layout, int axis,
                                const FirstDerivative& options) {
  const int along = checked_axis(layout, axis);
  return stencil_operator<T>(
      communicator, layout, {{.axis = along, .band = first_derivative_band(extent(layout, along), options)}});
}

template <class T>
AnyOperator<T> second_derivative(const comm::Communicator& communicator, const Layout& layout, int axis,
                                 const SecondDerivative& options) {
  const int along = checked_axis(layout, axis);
  return stencil_operator<T>(
      communicator, layout,
      {{.axis = along, .band = second_derivative_band(extent(layout, along), options)}});
}

template <class T>
AnyOperator<T> laplacian(const comm::Communicator& communicator, const Layout& layout,
                         const Laplacian& options) {
  return stencil_operator<T>(communicator, layout, laplacian_terms(layout, options));
}

template <class T>
AnyOperator<T> gradient(const comm::Communicator& communicator, const Layout& layout,
                        const Gradient& options) {
  return stencil_operator<T>(communicator, layout, gradient_terms(layout, options), /*to_stack=*/true);
}

#define SHOAL_INSTANTIATE(T)                                                                     \
  template AnyOperator<T> first_derivative(const comm::Communicator&, const Layout&, int,        \
                                           const FirstDerivative&);                              \
  template AnyOperator<T> second_derivative(const comm::Communicator&, const Layout&, int,       \
                                            const SecondDerivative&);                            \
  template AnyOperator<T> laplacian(const comm::Communicator&, const Layout&, const Laplacian&); \
  template AnyOperator<T> gradient(const comm::Communicator&, const Layout&, const Gradient&);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
