// SPDX-License-Identifier: Apache-2.0
// Derivatives by finite differences along any axis of an array in any layout: slabs, blocks or replicas, with
// parts of any size, also empty or shorter than the stencil.
//
// With n samples x_i, d apart, along the axis, where rows without enough neighbours are zero:
//   first, forward      (x_{i+1} - x_i) / d                               but the last row
//   first, backward     (x_i - x_{i-1}) / d                               but the first
//   first, centered 3   (x_{i+1} - x_{i-1}) / 2d                          but one at each end
//   first, centered 5   (x_{i-2} - 8 x_{i-1} + 8 x_{i+1} - x_{i+2}) / 12d but two at each end
//   second, forward     (x_{i+2} - 2 x_{i+1} + x_i) / d^2                 but the last two
//   second, backward    (x_i - 2 x_{i-1} + x_{i-2}) / d^2                 but the first two
//   second, centered    (x_{i+1} - 2 x_i + x_{i-1}) / d^2                 but one at each end
// `edge` fills the missing rows of the centered ones: first, the outermost by the one-sided difference (and
// of five points the next by three); second, by the forward and backward rows. These are the conventions of
// PyLops.
//
// The adjoint is the exact transpose, gathered as the forward is, and as fast. Where the axis is split, ghost
// planes travel while the inside is computed. Each application reads and writes memory once.
#pragma once

#include <cstdint>
#include <vector>

#include "shoal/linop/linear_operator.h"

namespace shoal::linop {

enum class Difference : std::uint8_t { centered, forward, backward };

struct FirstDerivative {
  Difference kind = Difference::centered;
  int order = 3;  // points of the centered one: 3 or 5
  bool edge = false;
  double sampling = 1;
};
/// `axis` counts from the end where negative.
template <class T>
AnyOperator<T> first_derivative(const comm::Communicator& communicator, const Layout& layout, int axis = 0,
                                const FirstDerivative& options = {});

struct SecondDerivative {
  Difference kind = Difference::centered;
  bool edge = false;
  double sampling = 1;
};
template <class T>
AnyOperator<T> second_derivative(const comm::Communicator& communicator, const Layout& layout, int axis = 0,
                                 const SecondDerivative& options = {});

/// The weighted sum of second derivatives along `axes`.
struct Laplacian {
  std::vector<int> axes = {-2, -1};
  std::vector<double> weights{};   // one for each axis; none: ones
  std::vector<double> sampling{};  // likewise
  Difference kind = Difference::centered;
  bool edge = false;
};
template <class T>
AnyOperator<T> laplacian(const comm::Communicator& communicator, const Layout& layout,
                         const Laplacian& options = {});

/// The first derivatives along all axes, as the members of a stack.
struct Gradient {
  std::vector<double> sampling{};  // one for each axis; none: ones
  Difference kind = Difference::centered;
  int order = 3;  // points of the centered ones: 3 or 5
  bool edge = false;
};
template <class T>
AnyOperator<T> gradient(const comm::Communicator& communicator, const Layout& layout,
                        const Gradient& options = {});

}  // namespace shoal::linop
