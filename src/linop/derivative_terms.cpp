// SPDX-License-Identifier: Apache-2.0
#include "linop/derivative_terms.h"

#include <algorithm>

#include <fmt/format.h>

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

}  // namespace

std::vector<StencilTerm> first_derivative_terms(const Layout& layout, int axis,
                                                const FirstDerivative& options) {
  const int along = checked_axis(layout, axis);
  return {{.axis = along, .band = first_derivative_band(extent(layout, along), options)}};
}

std::vector<StencilTerm> second_derivative_terms(const Layout& layout, int axis,
                                                 const SecondDerivative& options) {
  const int along = checked_axis(layout, axis);
  return {{.axis = along, .band = second_derivative_band(extent(layout, along), options)}};
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
    const FirstDerivative along{
        .kind = options.kind, .order = options.order, .edge = options.edge, .sampling = sampling[i]};
    terms.push_back({.output = i, .axis = axis, .band = first_derivative_band(extent(layout, axis), along)});
  }
  return terms;
}

}  // namespace shoal::linop
