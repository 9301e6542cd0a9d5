// SPDX-License-Identifier: Apache-2.0
#include "linop/panel_rows.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "linop/spectrum_of_reals.h"

namespace shoal::linop {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

}  // namespace

template <class R>
bool PanelRows<R>::takes(Index n, bool halved) {
  return halved ? n % 2 == 0 && ColumnFft<R>::takes(n / 2) : ColumnFft<R>::takes(n);
}

template <class R>
PanelRows<R>::PanelRows(Index count, Index n, bool halved)
    : count_(count),
      length_(halved ? n / 2 : n),
      forward_(Direction::forward, length_),
      backward_(Direction::backward, length_),
      panel_(at((length_ + 1) * panel_columns<R>)) {
  for (Index k = 0; halved && k <= length_ / 2; ++k) {
    const double angle = std::numbers::pi * static_cast<double>(k) / static_cast<double>(length_);
    roots_.insert(roots_.end(), {static_cast<R>(std::cos(angle)), static_cast<R>(std::sin(angle))});
  }
}

template <class R>
void PanelRows<R>::run(Direction direction, const C* from, C* to, R scale) const {
  constexpr Index width = panel_columns<R>;
  const ColumnFft<R>& fft = direction == Direction::forward ? forward_ : backward_;
  for (Index row = 0; row < count_; row += width) {
    const Index rows = std::min(width, count_ - row);
    load_panel<R>({from + row * length_, 1, length_}, length_, rows, panel_.data());
    fft.run(panel_.data(), width, panel_.data(), width, scale);
    store_panel<R>(panel_.data(), length_, rows, {to + row * length_, 1, length_});
  }
}

template <class R>
void PanelRows<R>::halve(const R* from, C* to, SpectrumScale<R> scale) const {
  constexpr Index width = panel_columns<R>;
  const C* const pairs = reinterpret_cast<const C*>(from);
  const Index bins = length_ + 1;
  for (Index row = 0; row < count_; row += width) {
    const Index rows = std::min(width, count_ - row);
    load_panel<R>({pairs + row * length_, 1, length_}, length_, rows, panel_.data());
    forward_.run(panel_.data(), width, panel_.data(), width, R{1});
    split_spectrum(reinterpret_cast<R*>(panel_.data()), roots_.data(), length_, scale.edge, scale.inner);
    store_panel<R>(panel_.data(), bins, rows, {to + row * bins, 1, bins});
  }
}

template <class R>
void PanelRows<R>::unhalve(const C* from, R* to, SpectrumScale<R> scale) const {
  constexpr Index width = panel_columns<R>;
  C* const pairs = reinterpret_cast<C*>(to);
  const Index bins = length_ + 1;
  for (Index row = 0; row < count_; row += width) {
    const Index rows = std::min(width, count_ - row);
    load_panel<R>({from + row * bins, 1, bins}, bins, rows, panel_.data());
    join_spectrum(reinterpret_cast<R*>(panel_.data()), roots_.data(), length_, scale.edge, scale.inner);
    backward_.run(panel_.data(), width, panel_.data(), width, R{1});
    store_panel<R>(panel_.data(), length_, rows, {pairs + row * length_, 1, length_});
  }
}

template class PanelRows<float>;
template class PanelRows<double>;

}  // namespace shoal::linop
