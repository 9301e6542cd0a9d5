// SPDX-License-Identifier: Apache-2.0
// Derivatives of one rank's array: against dense matrices along each axis, and as blocks against the
// distributed ones along axes that are not split.
#include <fmt/format.h>

#include "linop/dense_differences.h"
#include "shoal/linop/local/derivatives.h"
#include "shoal/linop/stacks.h"

namespace shoal::linop::checks {
namespace {

template <class T>
class LocalDerivatives : public testing::Test {};
TYPED_TEST_SUITE(LocalDerivatives, ElementTypes);

std::vector<FirstDerivative> first_kinds() {
  return {{.kind = Difference::forward, .sampling = 0.5},
          {.kind = Difference::backward},
          {.order = 3, .sampling = 2},
          {.order = 3, .edge = true},
          {.order = 5},
          {.order = 5, .edge = true, .sampling = -0.25}};
}
std::vector<SecondDerivative> second_kinds() {
  return {{.kind = Difference::forward, .sampling = 2},
          {.kind = Difference::backward},
          {.kind = Difference::centered, .sampling = 0.75},
          {.kind = Difference::centered, .edge = true}};
}

// Matrices along some axes of arrays of one shape: x -> factor_0 M_0 x + factor_1 M_1 x + ...
struct Along {
  int axis;
  Matrix matrix;
  double factor = 1;
};

template <class T>
std::vector<T> sum_along(const std::vector<Along>& all, const Shape& shape, bool turned,
                         const std::vector<T>& x) {
  std::vector<T> y(x.size(), T(0));
  for (const Along& along : all)
    add_along(turned ? along.matrix.transpose() : along.matrix, shape, along.axis, x, y, along.factor);
  return y;
}

// On one rank: the block is all there is.
template <class T>
void expect_sum(const AnyLocalOperator<T>& op, const std::vector<Along>& all, const Shape& shape,
                const std::string& what) {
  comm::run_threads(1, [&](comm::Communicator& communicator) {
    const AnyOperator<T> a = block_diagonal<T>(communicator, {op});
    expect_operator<T, T>(
        a, [&](const std::vector<T>& x) { return sum_along(all, shape, false, x); },
        [&](const std::vector<T>& y) { return sum_along(all, shape, true, y); }, what);
  });
}

TYPED_TEST(LocalDerivatives, EveryKindAlongEveryAxis) {
  using T = TypeParam;
  for (const Shape& shape : {Shape{7, 5, 9}, Shape{3, 1, 2}, Shape{4, 0, 3}, Shape{6}})
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      const Index n = shape[static_cast<std::size_t>(axis)];
      const std::string where = fmt::format(" along {} of {}", axis, array::to_string(shape));
      for (const FirstDerivative& options : first_kinds())
        expect_sum(local::first_derivative<T>(shape, axis, options), {{axis, first_matrix(n, options)}},
                   shape, fmt::format("first, kind {} of {}", static_cast<int>(options.kind), where));
      for (const SecondDerivative& options : second_kinds())
        expect_sum(local::second_derivative<T>(shape, axis, options), {{axis, second_matrix(n, options)}},
                   shape, fmt::format("second, kind {} of {}", static_cast<int>(options.kind), where));
    }
}

TYPED_TEST(LocalDerivatives, Laplacian) {
  using T = TypeParam;
  const Shape shape{5, 6, 4};
  expect_sum(local::laplacian<T>(shape), {{1, second_matrix(6, {})}, {2, second_matrix(4, {})}}, shape,
             "the last two axes");
  const Laplacian options{.axes = {2, 0}, .weights = {3, -0.5}, .sampling = {2, 0.5}, .edge = true};
  expect_sum(local::laplacian<T>(shape, options),
             {{2, second_matrix(4, {.edge = true, .sampling = 2}), 3},
              {0, second_matrix(5, {.edge = true, .sampling = 0.5}), -0.5}},
             shape, "weights and sampling");
}

TYPED_TEST(LocalDerivatives, GradientIsOneDerivativeAfterTheOther) {
  using T = TypeParam;
  const Shape shape{5, 1, 4};
  const Gradient options{.sampling = {2, 1, 0.5}, .kind = Difference::backward};
  const AnyLocalOperator<T> op = local::gradient<T>(shape, options);
  EXPECT_EQ(op.rows(), 3 * op.cols());
  std::vector<Matrix> matrices;
  for (std::size_t axis = 0; axis < 3; ++axis)
    matrices.push_back(first_matrix(shape[axis], {.kind = options.kind, .sampling = options.sampling[axis]}));
  comm::run_threads(1, [&](comm::Communicator& communicator) {
    expect_operator<T, T>(
        block_diagonal<T>(communicator, {op}),
        [&](const std::vector<T>& x) {
          std::vector<T> y;
          for (int axis = 0; axis < 3; ++axis) {
            const auto member = apply_along(matrices[static_cast<std::size_t>(axis)], shape, axis, x);
            y.insert(y.end(), member.begin(), member.end());
          }
          return y;
        },
        [&](const std::vector<T>& y) {
          std::vector<T> x(y.size() / 3, T(0));
          for (int axis = 0; axis < 3; ++axis) {
            const auto begin = y.begin() + static_cast<std::ptrdiff_t>(x.size()) * axis;
            add_along(matrices[static_cast<std::size_t>(axis)].transpose(), shape, axis,
                      std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(x.size())), x);
          }
          return x;
        },
        "gradient");
  });
}

// Slabs of 5 rows over up to 6 ranks: some have one row, the last none.
TYPED_TEST(LocalDerivatives, AsBlocksHaveTheBitsOfTheDistributedOnes) {
  using T = TypeParam;
  on_ranks([](comm::Communicator& communicator) {
    const Layout layout = Layout::split({5, 7, 6}, communicator.size());
    const Shape mine = layout.block(communicator.rank()).extent;
    const auto expect_block = [&](const AnyLocalOperator<T>& block, const AnyOperator<T>& distributed,
                                  const std::string& what) {
      expect_same_bits(reshaped(block_diagonal<T>(communicator, {block}), layout, layout), distributed, what);
      expect_adjoint(block_diagonal<T>(communicator, {block}), what);
    };
    for (const FirstDerivative& options : first_kinds())
      expect_block(local::first_derivative<T>(mine, 1, options),
                   first_derivative<T>(communicator, layout, 1, options), "first derivative");
    for (const SecondDerivative& options : second_kinds())
      expect_block(local::second_derivative<T>(mine, -1, options),
                   second_derivative<T>(communicator, layout, -1, options), "second derivative");
    expect_block(local::laplacian<T>(mine, {.edge = true}),
                 laplacian<T>(communicator, layout, {.edge = true}), "Laplacian");
  });
}

// Large enough for outputs that go past the caches.
TEST(LargeLocalDerivatives, OutputsLargerThanTheCaches) {
  const Shape shape{41, 61, 213};
  for (int axis = 0; axis < 3; ++axis) {
    const FirstDerivative options{.order = 5, .edge = true};
    expect_sum(local::first_derivative<double>(shape, axis, options),
               {{axis, first_matrix(shape[static_cast<std::size_t>(axis)], options)}}, shape,
               "large, along " + std::to_string(axis));
  }
}

TEST(LocalDerivativeErrors, SayWhatIsAllowed) {
  expect_contains(error_of([&] { local::first_derivative<double>({7, 5}, 2); }), {"axis 2", "-2 to 1"});
  expect_contains(error_of([&] {
                    local::second_derivative<double>({7, 5}, 0, {.sampling = 0});
                  }),
                  {"sampling", "0"});
  expect_contains(error_of([&] { local::first_derivative<double>({7}, 0, {.order = 4}); }), {"3 or 5", "4"});
  expect_contains(error_of([&] {
                    local::laplacian<double>({7, 5}, {.weights = {1}});
                  }),
                  {"weights", "1 values for 2 axes"});
  expect_contains(error_of([&] { local::gradient<double>({}); }), {"0 axes"});
}

}  // namespace
}  // namespace shoal::linop::checks
