// SPDX-License-Identifier: Apache-2.0
// The members of a stack taken together: element i of all of them is a vector, and this is about its length.
#pragma once

#include <algorithm>

#include <fmt/format.h>

#include "shoal/base/error.h"
#include "solver/proximal/kernels.h"
#include "solver/proximal/space_of.h"

namespace shoal::solver::lengths {

inline constexpr std::size_t piece = 512;  // elements at a time

/// Throws unless `layout` is a stack of equal members; `what` begins the message.
inline void check(const Layout& layout, const char* what) {
  if (!layout.is_stack() || layout.members().empty())
    fail(
        ErrorCode::invalid_argument,
        fmt::format("{}: {} is not a stack; give the members to be taken together", what, layout.describe()));
  for (const Layout& member : layout.members())
    if (!(member == layout.member(0)))  // the message is memory
      require_equal(layout.member(0), member,
                    fmt::format("the members of a stack given to {}", what).c_str());
}

/// squares[i] = the square of the length of vector first + i, for i < n.
template <class T>
void squares(const DistributedArray<T>& x, std::size_t first, std::size_t n, double* squares) {
  std::fill_n(squares, n, 0.0);
  for (int k = 0; k < static_cast<int>(x.layout().members().size()); ++k)
    kernels::add_squares(x.member(k).local().data() + first, squares, n);
}

/// The sum of all lengths.
template <class T>
LocalSum sum(SpaceOf<T>& space_of_member, const DistributedArray<T>& x) {
  const DistributedArray<T>& leading = x.member(0);
  return sum_elements(space_of_member(leading), leading, [&](const T* from, std::size_t length) {
    double total = 0, sums[piece];
    for (std::size_t i = 0; i < length; i += piece) {
      const std::size_t n = std::min(piece, length - i);
      squares(x, static_cast<std::size_t>(from - leading.local().data()) + i, n, sums);
      total += kernels::sum_roots(sums, n);
    }
    return total;
  });
}

/// Each vector times a factor; factors_of(squares, n) puts it in place of the square of its length. `out` may
/// be `x`.
template <class T, class Factors>
void scale(const DistributedArray<T>& x, const Factors& factors_of, DistributedArray<T>& out) {
  const std::size_t length = x.member(0).local().size();
  double factors[piece];
  for (std::size_t i = 0; i < length; i += piece) {
    const std::size_t n = std::min(piece, length - i);
    squares(x, i, n, factors);
    factors_of(factors, n);
    for (int k = 0; k < static_cast<int>(x.layout().members().size()); ++k)
      kernels::multiply(factors, x.member(k).local().data() + i, out.member(k).local().data() + i, n);
  }
}

}  // namespace shoal::solver::lengths
