// SPDX-License-Identifier: Apache-2.0
// Between columns anywhere in memory and a panel: [n, panel_columns], each row a cache line.
#pragma once

#include <complex>

#include "shoal/array/layout.h"

namespace shoal::linop {

/// Complex numbers of a cache line.
template <class R>
inline constexpr array::Index panel_columns = 64 / static_cast<array::Index>(sizeof(std::complex<R>));

/// A column's elements are `down` apart, neighbouring columns `across`.
template <class C>
struct PanelView {
  C* data;
  array::Index down, across;
};

/// `columns` of n elements; the panel's other columns become zero.
template <class R>
void load_panel(PanelView<const std::complex<R>> from, array::Index n, array::Index columns,
                std::complex<R>* panel);
template <class R>
void store_panel(const std::complex<R>* panel, array::Index n, array::Index columns,
                 PanelView<std::complex<R>> to);

}  // namespace shoal::linop
