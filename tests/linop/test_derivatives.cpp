// SPDX-License-Identifier: Apache-2.0
// First and second derivatives: every pair of split axis and derivative axis, all kinds, parts that are
// uneven, empty and shorter than the stencil, against dense matrices and against one rank.
#include <fmt/format.h>

#include "linop/dense_differences.h"

namespace shoal::linop::checks {
namespace {

std::vector<FirstDerivative> first_kinds() {
  std::vector<FirstDerivative> kinds{{.kind = Difference::forward, .sampling = 0.5},
                                     {.kind = Difference::backward}};
  for (const int order : {3, 5})
    for (const bool edge : {false, true})
      kinds.push_back({.kind = Difference::centered, .order = order, .edge = edge, .sampling = 0.75});
  return kinds;
}

std::vector<SecondDerivative> second_kinds() {
  return {{.kind = Difference::forward},
          {.kind = Difference::backward, .sampling = -0.5},
          {.kind = Difference::centered, .sampling = 0.75},
          {.kind = Difference::centered, .edge = true}};
}

template <class T>
void expect_along(const AnyOperator<T>& a, const AnyOperator<T>& serial, const Matrix& matrix, int axis,
                  const std::string& what) {
  const Shape shape = a.domain().shape();
  const Matrix turned = matrix.transpose();
  expect_operator<T, T>(
      a, [&](const std::vector<T>& x) { return apply_along(matrix, shape, axis, x); },
      [&](const std::vector<T>& y) { return apply_along(turned, shape, axis, y); }, what);
  expect_same_bits(a, serial, what);
}

template <class T>
void expect_derivatives(comm::Communicator& communicator, const Shape& shape) {
  const comm::Communicator self = alone(communicator);
  const Layout whole = Layout::split(shape, 1);
  for (const Layout& layout : layouts_of(shape, communicator.size()))
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      const Index n = shape[static_cast<std::size_t>(axis)];
      for (const FirstDerivative& options : first_kinds())
        expect_along(first_derivative<T>(communicator, layout, axis, options),
                     first_derivative<T>(self, whole, axis, options), first_matrix(n, options), axis,
                     fmt::format("first derivative kind {} order {} edge {} along {} of {}",
                                 static_cast<int>(options.kind), options.order, options.edge, axis,
                                 layout.describe()));
      for (const SecondDerivative& options : second_kinds())
        expect_along(second_derivative<T>(communicator, layout, axis, options),
                     second_derivative<T>(self, whole, axis, options), second_matrix(n, options), axis,
                     fmt::format("second derivative kind {} edge {} along {} of {}",
                                 static_cast<int>(options.kind), options.edge, axis, layout.describe()));
    }
}

template <class T>
class Derivatives : public testing::Test {};
TYPED_TEST_SUITE(Derivatives, ElementTypes);

TYPED_TEST(Derivatives, AllPairsOfSplitAndDerivativeAxis) {
  on_ranks([](comm::Communicator& c) { expect_derivatives<TypeParam>(c, {7, 5, 9}); }, {1, 2, 4});
}

TEST(Derivatives, PartsShorterThanTheStencil) {
  on_ranks([](comm::Communicator& c) { expect_derivatives<double>(c, {7, 6}); }, {3, 6});
}

TEST(Derivatives, AxesShorterThanTheStencil) {
  for (const Index n : {0, 1, 2, 3, 4, 5})
    on_ranks([n](comm::Communicator& c) { expect_derivatives<float>(c, {n}); }, {1, 2, 3});
}

TEST(Derivatives, NoElementsOnOtherAxes) {
  on_ranks([](comm::Communicator& c) { expect_derivatives<double>(c, {4, 0, 3}); }, {1, 2});
}

// Large enough for outputs that go past the caches, with rows that begin and end within cache lines.
template <class T>
void expect_large(comm::Communicator& communicator, const Shape& shape) {
  for (const Layout& layout : {Layout::split(shape, communicator.size(), 0),
                               Layout::split(shape, communicator.size(), static_cast<int>(shape.size()) - 1)})
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      const FirstDerivative options{.order = 5, .edge = true};
      const AnyOperator<T> a = first_derivative<T>(communicator, layout, axis, options);
      const Matrix matrix = first_matrix(shape[static_cast<std::size_t>(axis)], options);
      std::vector<T> x;
      const std::vector<T> y = apply_to_random(a, 7, x);
      expect_close(y, apply_along(matrix, shape, axis, x), "large, along " + std::to_string(axis));
      std::vector<T> back_in;
      const std::vector<T> back = apply_to_random(adjoint(a), 8, back_in);
      expect_close(back, apply_along(matrix.transpose(), shape, axis, back_in), "large, adjoint");
    }
}

TEST(Derivatives, OutputsLargerThanTheCaches) {
  on_ranks([](comm::Communicator& c) { expect_large<double>(c, {41, 61, 213}); }, {1});
  on_ranks([](comm::Communicator& c) { expect_large<std::complex<float>>(c, {101, 57, 189}); }, {2});
}

TEST(DerivativeErrors, SayWhatIsAllowed) {
  on_ranks(
      [](comm::Communicator& c) {
        const Layout layout = Layout::split({7, 5}, c.size());
        expect_contains(error_of([&] { first_derivative<double>(c, layout, 2); }), {"axis 2", "-2 to 1"});
        expect_contains(error_of([&] { second_derivative<double>(c, layout, -3); }), {"axis -3"});
        expect_contains(error_of([&] { first_derivative<double>(c, layout, 0, {.order = 4}); }),
                        {"3 or 5", "4"});
        expect_contains(error_of([&] { first_derivative<double>(c, layout, 0, {.sampling = 0}); }),
                        {"sampling"});
        error_of([&] { first_derivative<double>(c, Layout::stack({layout, layout}), 0); });
        // The last axis by its negative number.
        const auto a = first_derivative<double>(c, layout, -1), b = first_derivative<double>(c, layout, 1);
        const auto x = random_array<double>(c, layout, 1);
        EXPECT_EQ(a(x).to_full(), b(x).to_full());
      },
      {1, 2});
}

}  // namespace
}  // namespace shoal::linop::checks
