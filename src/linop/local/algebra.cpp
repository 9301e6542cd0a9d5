// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/local/algebra.h"

#include <complex>
#include <vector>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "linop/scalar_math.h"
#include "shoal/base/error.h"

namespace shoal::linop::local {
namespace {

// The memory between the parts is made once and kept.
template <class T>
struct Combined {
  using value_type = T;
  AnyLocalOperator<T> a, b;
  std::shared_ptr<std::vector<T>> between = std::make_shared<std::vector<T>>();
  std::span<T> room(Index n) const {
    between->resize(static_cast<std::size_t>(n));
    return *between;
  }
};

template <class T>
struct SumOf : Combined<T> {
  Index rows() const { return this->a.rows(); }
  Index cols() const { return this->a.cols(); }
  void apply(std::span<const T> x, std::span<T> y) const {
    const std::span<T> second = this->room(rows());
    this->a.apply(x, y);
    this->b.apply(x, second);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += second[i];
  }
  void apply_adjoint(std::span<const T> y, std::span<T> x) const {
    const std::span<T> second = this->room(cols());
    this->a.apply_adjoint(y, x);
    this->b.apply_adjoint(y, second);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += second[i];
  }
};

template <class T>
struct ProductOf : Combined<T> {
  Index rows() const { return this->a.rows(); }
  Index cols() const { return this->b.cols(); }
  void apply(std::span<const T> x, std::span<T> y) const {
    const std::span<T> middle = this->room(this->b.rows());
    this->b.apply(x, middle);
    this->a.apply(middle, y);
  }
  void apply_adjoint(std::span<const T> y, std::span<T> x) const {
    const std::span<T> middle = this->room(this->b.rows());
    this->a.apply_adjoint(y, middle);
    this->b.apply_adjoint(middle, x);
  }
};

template <class T>
struct Scaled {
  using value_type = T;
  T factor;
  AnyLocalOperator<T> a;
  Index rows() const { return a.rows(); }
  Index cols() const { return a.cols(); }
  void apply(std::span<const T> x, std::span<T> y) const {
    a.apply(x, y);
    for (T& v : y) v = times(factor, v);
  }
  void apply_adjoint(std::span<const T> y, std::span<T> x) const {
    a.apply_adjoint(y, x);
    for (T& v : x) v = times(conj_of(factor), v);
  }
};

}  // namespace

template <class T>
AnyLocalOperator<T> sum(const AnyLocalOperator<T>& a, const AnyLocalOperator<T>& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols())
    fail(ErrorCode::invalid_argument, fmt::format("local operators of {} x {} and {} x {} cannot be added",
                                                  a.rows(), a.cols(), b.rows(), b.cols()));
  SumOf<T> result{{a, b}};
  return result;
}

template <class T>
AnyLocalOperator<T> product(const AnyLocalOperator<T>& a, const AnyLocalOperator<T>& b) {
  if (a.cols() != b.rows())
    fail(ErrorCode::invalid_argument, fmt::format("local operators of {} x {} and {} x {} have no product",
                                                  a.rows(), a.cols(), b.rows(), b.cols()));
  ProductOf<T> result{{a, b}};
  return result;
}

template <class T>
AnyLocalOperator<T> scaled(std::type_identity_t<T> factor, const AnyLocalOperator<T>& a) {
  return Scaled<T>{factor, a};
}

#define SHOAL_INSTANTIATE(T)                                                                    \
  template AnyLocalOperator<T> sum(const AnyLocalOperator<T>&, const AnyLocalOperator<T>&);     \
  template AnyLocalOperator<T> product(const AnyLocalOperator<T>&, const AnyLocalOperator<T>&); \
  template AnyLocalOperator<T> scaled<T>(std::type_identity_t<T>, const AnyLocalOperator<T>&);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop::local
