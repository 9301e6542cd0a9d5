// SPDX-License-Identifier: Apache-2.0
// What the tests of solvers share: problems whose solution is known by elimination, in any layout.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "linop/operator_checks.h"
#include "shoal/linop/stacks.h"
#include "shoal/solver/solver.h"

namespace shoal::solver::testing {

using array::Index;
using array::is_complex;
using array::Shape;
using linop::checks::Dense;
using linop::checks::ElementTypes;
using linop::checks::error_of;
using linop::checks::expect_close;
using linop::checks::expect_contains;
using linop::checks::make;
using linop::checks::on_ranks;
using linop::checks::poisoned;
using linop::checks::random_array;
using linop::checks::RealTypes;

/// A matrix applied to arrays of any layout, by gathering them: slow and plain.
template <class T>
struct GatheredMatrix {
  using domain_type = T;
  using range_type = T;
  const comm::Communicator& communicator() const { return group; }
  const Layout& domain() const { return in; }
  const Layout& range() const { return out; }
  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const { multiply(matrix, x, y); }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const { multiply(adjoint, y, x); }
  static void multiply(const Dense<T>& a, const DistributedArray<T>& x, DistributedArray<T>& y) {
    const std::vector<T> full = x.to_full();
    std::vector<T> product(static_cast<std::size_t>(a.rows()));
    a.apply(full, product);
    y = DistributedArray<T>::from_full(y.communicator(), y.layout(), product);
  }
  comm::Communicator group;
  Layout in, out;
  Dense<T> matrix, adjoint;
};

template <class T>
AnyOperator<T> gathered(const comm::Communicator& communicator, const Dense<T>& matrix, const Layout& domain,
                        const Layout& range) {
  return GatheredMatrix<T>{communicator, domain, range, matrix, matrix.conjugate_transpose()};
}

/// The solution of M x = b by elimination with row exchange.
template <class T>
std::vector<T> eliminate(Dense<T> m, std::vector<T> b) {
  const Index n = m.rows();
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  for (Index k = 0; k < n; ++k) {
    Index pivot = k;
    for (Index i = k + 1; i < n; ++i)
      if (std::abs(m.at(i, k)) > std::abs(m.at(pivot, k))) pivot = i;
    for (Index j = 0; j < n; ++j) std::swap(m.at(k, j), m.at(pivot, j));
    std::swap(b[at(k)], b[at(pivot)]);
    for (Index i = k + 1; i < n; ++i) {
      const T factor = m.at(i, k) / m.at(k, k);
      for (Index j = k; j < n; ++j) m.at(i, j) -= factor * m.at(k, j);
      b[at(i)] -= factor * b[at(k)];
    }
  }
  for (Index k = n - 1; k >= 0; --k) {
    for (Index j = k + 1; j < n; ++j) b[at(k)] -= m.at(k, j) * b[at(j)];
    b[at(k)] /= m.at(k, k);
  }
  return b;
}

template <class T>
Dense<T> identity_matrix(Index n, T value = T(1)) {
  Dense<T> a(n, n);
  for (Index i = 0; i < n; ++i) a.at(i, i) = value;
  return a;
}

/// argmin |b - A x|^2 + damping^2 |x|^2, by the normal equations.
template <class T>
std::vector<T> least_squares(const Dense<T>& a, const std::vector<T>& b, double damping) {
  const Dense<T> adjoint = a.conjugate_transpose();
  std::vector<T> right(static_cast<std::size_t>(a.cols()));
  adjoint.apply(b, right);
  const T square = T(static_cast<Real<T>>(damping * damping));
  return eliminate(sum(adjoint * a, square, identity_matrix<T>(a.cols())), right);
}

/// A unitary matrix: I - 2 v v^H / v^H v.
template <class T>
Dense<T> reflection(Index n) {
  std::vector<T> v;
  double square = 0;
  for (Index i = 0; i < n; ++i) {
    v.push_back(make<T>(1 + static_cast<double>(i % 3), static_cast<double>(i % 4) - 1.5));
    square += static_cast<double>(std::norm(v.back()));
  }
  Dense<T> q = identity_matrix<T>(n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      const T other = [&] {
        if constexpr (is_complex<T>)
          return std::conj(v[static_cast<std::size_t>(j)]);
        else
          return v[static_cast<std::size_t>(j)];
      }();
      q.at(i, j) -= static_cast<Real<T>>(2 / square) * v[static_cast<std::size_t>(i)] * other;
    }
  return q;
}

/// A normal matrix of these eigenvalues; Hermitian where they are real.
template <class T>
Dense<T> with_eigenvalues(const std::vector<T>& eigenvalues) {
  const auto n = static_cast<Index>(eigenvalues.size());
  Dense<T> diagonal(n, n);
  for (Index i = 0; i < n; ++i) diagonal.at(i, i) = eigenvalues[static_cast<std::size_t>(i)];
  const Dense<T> q = reflection<T>(n);
  return q * diagonal * q.conjugate_transpose();
}

template <class T>
std::vector<T> scaled(std::vector<T> values, double factor) {
  for (T& value : values) value *= static_cast<Real<T>>(factor);
  return values;
}
template <class T>
Dense<T> scaled(Dense<T> a, double factor) {
  a.elements = scaled(a.elements, factor);
  return a;
}

template <class T>
std::vector<T> numbers(Index n, int seed) {
  std::vector<T> values;
  for (Index i = 0; i < n; ++i)
    values.push_back(make<T>(static_cast<double>((i * 5 + seed) % 7) - 2.5, static_cast<double>(i % 3) - 1));
  return values;
}

/// Layouts of n elements in a row: even, uneven with empty parts, replicated, and a stack of a split and a
/// replicated part.
inline std::vector<Layout> row_layouts(Index n, int ranks) {
  std::vector<Index> uneven(static_cast<std::size_t>(ranks), 0);
  uneven[static_cast<std::size_t>(ranks) / 2] = n;
  return {Layout::split({n}, ranks), Layout::split_unevenly({n}, uneven), Layout::replicated({n}, ranks),
          Layout::stack({Layout::split({n - n / 3}, ranks), Layout::replicated({n / 3}, ranks)})};
}

template <class T>
DistributedArray<T> array_of(const comm::Communicator& communicator, const Layout& layout,
                             const std::vector<T>& values) {
  return DistributedArray<T>::from_full(communicator, layout, values);
}

/// The tolerance of a solution by iteration, and for its comparison.
template <class T>
inline constexpr double solving = sizeof(Real<T>) == 4 ? 1e-6 : 1e-13;
template <class T>
inline constexpr double comparing = sizeof(Real<T>) == 4 ? 2e-4 : 1e-10;

}  // namespace shoal::solver::testing
