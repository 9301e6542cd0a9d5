// SPDX-License-Identifier: Apache-2.0
// Choosing and interpolating samples along one axis.
#pragma once

#include <span>
#include <vector>

#include "shoal/linop/local/lines.h"

namespace shoal::linop::local {

/// y[i] = x[index_i] along `axis`; an index may occur several times.
template <class T>
class Restriction {
 public:
  using value_type = T;
  Restriction(Shape dims, std::vector<Index> indices, int axis = -1);
  Index rows() const { return lines_.outer * static_cast<Index>(indices_.size()) * lines_.inner; }
  Index cols() const { return lines_.size(); }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Lines lines_;
  std::vector<Index> indices_;
};

/// Values at fractional positions in [0, extent - 1] along `axis`, linear between the samples.
template <class T>
class Interpolation {
 public:
  using value_type = T;
  Interpolation(Shape dims, std::vector<double> positions, int axis = -1);
  Index rows() const { return lines_.outer * static_cast<Index>(positions_.size()) * lines_.inner; }
  Index cols() const { return lines_.size(); }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Lines lines_;
  std::vector<double> positions_;
};

}  // namespace shoal::linop::local
