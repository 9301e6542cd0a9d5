// SPDX-License-Identifier: Apache-2.0
// Diagonal, identity and zero.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "shoal/array/layout.h"

namespace shoal::linop::local {

using array::Index;

/// y_i = d_i x_i
template <class T>
class Diagonal {
 public:
  using value_type = T;
  explicit Diagonal(std::vector<T> diagonal);
  Index rows() const { return static_cast<Index>(diagonal_->size()); }
  Index cols() const { return rows(); }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  std::shared_ptr<const std::vector<T>> diagonal_;
};

/// The first min(rows, cols) elements, and zeros after them.
template <class T>
class Identity {
 public:
  using value_type = T;
  explicit Identity(Index n) : Identity(n, n) {}
  Identity(Index rows, Index cols);
  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Index rows_, cols_;
};

template <class T>
class Zero {
 public:
  using value_type = T;
  Zero(Index rows, Index cols);
  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  Index rows_, cols_;
};

}  // namespace shoal::linop::local
