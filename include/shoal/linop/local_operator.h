// SPDX-License-Identifier: Apache-2.0
// Linear operators that live on one rank, as blocks of the distributed ones: dense and sparse matrices,
// derivatives, convolutions, transforms. They know no communicator.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <utility>

#include "shoal/array/layout.h"

namespace shoal::linop {

using array::Index;
using array::Shape;

/// y (rows) = A x (cols) and x = A^H y. Outputs are overwritten and never read; they share no memory with
/// inputs.
template <class Op>
concept LocalOperator = requires(const Op& op, std::span<const typename Op::value_type> in,
                                 std::span<typename Op::value_type> out) {
  typename Op::value_type;
  { op.rows() } -> std::convertible_to<Index>;
  { op.cols() } -> std::convertible_to<Index>;
  op.apply(in, out);
  op.apply_adjoint(in, out);
};

/// Any local operator, behind one type that checks lengths. Copies share it: for one thread at a time.
template <class T>
class AnyLocalOperator {
 public:
  using value_type = T;
  template <LocalOperator Op>
  requires(!std::same_as<std::remove_cvref_t<Op>, AnyLocalOperator> &&
           std::same_as<typename Op::value_type, T>) AnyLocalOperator(Op op)
      : self_(std::make_shared<Model<Op>>(std::move(op))) {}

  Index rows() const { return self_->rows(); }
  Index cols() const { return self_->cols(); }
  void apply(std::span<const T> x, std::span<T> y) const;
  void apply_adjoint(std::span<const T> y, std::span<T> x) const;

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual Index rows() const = 0;
    virtual Index cols() const = 0;
    virtual void apply(std::span<const T> x, std::span<T> y) const = 0;
    virtual void apply_adjoint(std::span<const T> y, std::span<T> x) const = 0;
  };
  template <class Op>
  struct Model final : Interface {
    explicit Model(Op op_in) : op(std::move(op_in)) {}
    Index rows() const override { return op.rows(); }
    Index cols() const override { return op.cols(); }
    void apply(std::span<const T> x, std::span<T> y) const override { op.apply(x, y); }
    void apply_adjoint(std::span<const T> y, std::span<T> x) const override { op.apply_adjoint(y, x); }
    Op op;
  };
  std::shared_ptr<const Interface> self_;
};

/// A^H
template <class T>
AnyLocalOperator<T> adjoint(const AnyLocalOperator<T>& a);

}  // namespace shoal::linop
