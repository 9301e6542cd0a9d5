// SPDX-License-Identifier: Apache-2.0
// What every operator is held against: the dot-test, an independent formula, and the same operator on one
// rank.
//
// A test runs its body on 1, 2, 3, 4 and 6 ranks (threads). Outputs hold NaN before, so an element that is
// read or left out shows.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/linop/linear_operator.h"
#include "shoal/linop/local_operator.h"

namespace shoal::linop::checks {

using RealTypes = testing::Types<float, double>;
using ElementTypes = testing::Types<float, double, std::complex<float>, std::complex<double>>;

/// Runs `body` on each number of ranks.
inline void on_ranks(const std::function<void(comm::Communicator&)>& body,
                     const std::vector<int>& counts = {1, 2, 3, 4, 6}) {
  for (const int ranks : counts) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    comm::run_threads(ranks, body);
  }
}

/// This rank alone, for the serial twin of an operator. Collective.
inline comm::Communicator alone(comm::Communicator& communicator) {
  return *communicator.split(communicator.rank());
}

template <class T>
T make(double re, double im) {
  if constexpr (array::is_complex<T>)
    return T(static_cast<Real<T>>(re), static_cast<Real<T>>(im));
  else
    return static_cast<T>(re + 0.25 * im);
}

/// The precision that results of a few operations have, relative to values around 1.
template <class T>
double precision() {
  return 200 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
}

template <class T>
DistributedArray<T> random_array(const comm::Communicator& communicator, const Layout& layout,
                                 std::uint64_t seed) {
  DistributedArray<T> x(communicator, layout);
  fill_normal(x, seed);
  return x;
}

template <class T>
DistributedArray<T> poisoned(const comm::Communicator& communicator, const Layout& layout) {
  DistributedArray<T> x(communicator, layout);
  x.fill(T(std::numeric_limits<Real<T>>::quiet_NaN()));
  return x;
}

/// Element by element, relative to the largest expected magnitude.
template <class T>
void expect_close(const std::vector<T>& actual, const std::vector<T>& expected, const std::string& what,
                  double tolerance = precision<T>()) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 1;
  for (const T& value : expected) largest = std::max(largest, static_cast<double>(std::abs(value)));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double distance = static_cast<double>(std::abs(actual[i] - expected[i]));
    ASSERT_TRUE(distance <= tolerance * largest)  // also false for NaN
        << what << ": element " << i << " is " << actual[i] << ", expected " << expected[i];
  }
}

template <class D, class R>
void expect_adjoint(const AnyOperator<D, R>& a, const std::string& what) {
  const DotTest test = dot_test(a);
  EXPECT_TRUE(test.passed) << what << ": <Ax, y> = " << test.forward << ", <x, A^H y> = " << test.adjoint
                           << ", error " << test.error;
}

/// A x for random x, gathered; x must not change.
template <class D, class R>
std::vector<R> apply_to_random(const AnyOperator<D, R>& a, std::uint64_t seed, std::vector<D>& x_full) {
  const DistributedArray<D> x = random_array<D>(a.communicator(), a.domain(), seed);
  x_full = x.to_full();
  DistributedArray<R> y = poisoned<R>(a.communicator(), a.range());
  a.apply(x, y);
  EXPECT_EQ(x.to_full(), x_full) << "the input was changed";
  return y.to_full();
}

/// The operator against `forward` and `back`, which map full arrays, and by the dot-test.
template <class D, class R>
void expect_operator(const AnyOperator<D, R>& a,
                     const std::function<std::vector<R>(const std::vector<D>&)>& forward,
                     const std::function<std::vector<D>(const std::vector<R>&)>& back,
                     const std::string& what) {
  std::vector<D> x;
  const std::vector<R> y = apply_to_random(a, 3, x);
  expect_close(y, forward(x), what + ", forward");
  std::vector<R> y_in;
  const std::vector<D> x_out = apply_to_random(adjoint(a), 4, y_in);
  expect_close(x_out, back(y_in), what + ", adjoint");
  expect_adjoint(a, what);
}

/// The same bits as `serial`, an operator on one rank, gives for the same numbers.
template <class D, class R>
void expect_same_bits(const AnyOperator<D, R>& a, const AnyOperator<D, R>& serial, const std::string& what) {
  std::vector<D> x;
  const std::vector<R> y = apply_to_random(a, 5, x);
  const auto x_serial = DistributedArray<D>::from_full(serial.communicator(), serial.domain(), x);
  EXPECT_EQ(y, serial(x_serial).to_full()) << what << ", forward";
  std::vector<R> y_in;
  const std::vector<D> x_out = apply_to_random(adjoint(a), 6, y_in);
  const auto y_serial = DistributedArray<R>::from_full(serial.communicator(), serial.range(), y_in);
  EXPECT_EQ(x_out, serial.adjoint_of(y_serial).to_full()) << what << ", adjoint";
}

/// A dense matrix, as what operators are compared with and as a local operator. Row-major.
template <class T>
struct Dense {
  using value_type = T;
  Index height = 0, width = 0;
  std::vector<T> elements;

  Dense() = default;
  Dense(Index rows, Index cols)
      : height(rows), width(cols), elements(static_cast<std::size_t>(rows * cols)) {}
  /// Different numbers for different seeds.
  static Dense numbered(Index rows, Index cols, int seed) {
    Dense a(rows, cols);
    for (Index i = 0; i < rows * cols; ++i) {
      const double re = static_cast<double>((i * 7 + seed * 5) % 11) - 5.0;
      const double im = static_cast<double>((i * 3 + seed * 2) % 7) - 3.0;
      a.elements[static_cast<std::size_t>(i)] = make<T>(re / 4, im / 4);
    }
    return a;
  }
  T& at(Index i, Index j) { return elements[static_cast<std::size_t>(i * width + j)]; }
  T at(Index i, Index j) const { return elements[static_cast<std::size_t>(i * width + j)]; }

  Index rows() const { return height; }
  Index cols() const { return width; }
  void apply(std::span<const T> x, std::span<T> y) const {
    for (Index i = 0; i < height; ++i) {
      T sum(0);
      for (Index j = 0; j < width; ++j) sum += at(i, j) * x[static_cast<std::size_t>(j)];
      y[static_cast<std::size_t>(i)] = sum;
    }
  }
  void apply_adjoint(std::span<const T> y, std::span<T> x) const { conjugate_transpose().apply(y, x); }
  Dense transpose() const {
    Dense t(width, height);
    for (Index i = 0; i < height; ++i)
      for (Index j = 0; j < width; ++j) t.at(j, i) = at(i, j);
    return t;
  }
  Dense conjugate() const {
    Dense c = *this;
    if constexpr (array::is_complex<T>)
      for (T& element : c.elements) element = std::conj(element);
    return c;
  }
  Dense conjugate_transpose() const { return transpose().conjugate(); }
};

template <class T>
Dense<T> operator*(const Dense<T>& a, const Dense<T>& b) {
  Dense<T> c(a.height, b.width);
  for (Index i = 0; i < a.height; ++i)
    for (Index j = 0; j < b.width; ++j)
      for (Index k = 0; k < a.width; ++k) c.at(i, j) += a.at(i, k) * b.at(k, j);
  return c;
}
/// a + factor b
template <class T>
Dense<T> sum(const Dense<T>& a, T factor, const Dense<T>& b) {
  Dense<T> c = a;
  for (std::size_t i = 0; i < c.elements.size(); ++i) c.elements[i] += factor * b.elements[i];
  return c;
}

/// The matrix of a linear operator, by its application to unit vectors. Collective.
template <class T>
Dense<T> dense_of(const AnyOperator<T>& a) {
  Dense<T> matrix(a.range().size(), a.domain().size());
  std::vector<T> unit(static_cast<std::size_t>(matrix.width), T(0));
  DistributedArray<T> y = poisoned<T>(a.communicator(), a.range());
  for (Index j = 0; j < matrix.width; ++j) {
    unit[static_cast<std::size_t>(j)] = T(1);
    a.apply(DistributedArray<T>::from_full(a.communicator(), a.domain(), unit), y);
    unit[static_cast<std::size_t>(j)] = T(0);
    const std::vector<T> column = y.to_full();
    for (Index i = 0; i < matrix.height; ++i) matrix.at(i, j) = column[static_cast<std::size_t>(i)];
  }
  return matrix;
}

/// An operator's matrix, and its adjoint's, and the dot-test.
template <class T>
void expect_matrix(const AnyOperator<T>& a, const Dense<T>& expected, const std::string& what) {
  expect_close(dense_of(a).elements, expected.elements, what);
  expect_close(dense_of(adjoint(a)).elements, expected.conjugate_transpose().elements, what + ", adjoint");
  expect_adjoint(a, what);
}

/// `what()` of the Error that `call` throws; every rank must throw the same.
template <class Call>
std::string error_of(Call&& call, ErrorCode expected = ErrorCode::invalid_argument) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), std::string(to_string(expected)));
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

inline void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

/// Ways to lay out a shape over `ranks`: slabs along each axis, balanced and with empty and uneven parts,
/// blocks over two and three axes, replicas.
inline std::vector<Layout> layouts_of(const Shape& shape, int ranks) {
  std::vector<Layout> layouts{Layout::replicated(shape, ranks)};
  const int axes = static_cast<int>(shape.size());
  for (int axis = 0; axis < axes; ++axis) {
    layouts.push_back(Layout::split(shape, ranks, axis));
    if (ranks == 1) continue;
    // All but one element on the last but one rank, the rest on the first; others are empty.
    std::vector<Index> extents(static_cast<std::size_t>(ranks), 0);
    const Index n = shape[static_cast<std::size_t>(axis)];
    extents[0] = std::min<Index>(n, 1);
    extents[static_cast<std::size_t>(ranks) - 1] += n - extents[0];
    if (ranks > 2)
      std::swap(extents[static_cast<std::size_t>(ranks) - 1], extents[static_cast<std::size_t>(ranks) - 2]);
    layouts.push_back(Layout::split_unevenly(shape, extents, axis));
  }
  if (axes >= 2 && ranks % 2 == 0) {
    std::vector<int> grid(shape.size(), 1);
    grid[0] = ranks / 2;
    grid.back() = 2;
    layouts.push_back(Layout::blocks(shape, grid));
    if (axes >= 3) {
      std::vector<int> inner(shape.size(), 1);
      inner[1] = 2;
      inner[2] = ranks / 2;
      layouts.push_back(Layout::blocks(shape, inner));
    }
  }
  return layouts;
}

}  // namespace shoal::linop::checks
