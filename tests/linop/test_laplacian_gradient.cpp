// SPDX-License-Identifier: Apache-2.0
// The fused operators, against dense matrices along each axis, against the sums they stand for, and against
// one rank.
#include <fmt/format.h>

#include "linop/dense_differences.h"
#include "shoal/linop/stacks.h"

namespace shoal::linop::checks {
namespace {

template <class T>
std::vector<T> naive_laplacian(const Laplacian& options, const Shape& shape, const std::vector<T>& x,
                               bool turned) {
  std::vector<T> y(x.size(), T(0));
  for (std::size_t i = 0; i < options.axes.size(); ++i) {
    const int axes = static_cast<int>(shape.size());
    const int axis = (options.axes[i] + axes) % axes;
    Matrix matrix = second_matrix(shape[static_cast<std::size_t>(axis)],
                                  {.kind = options.kind,
                                   .edge = options.edge,
                                   .sampling = options.sampling.empty() ? 1 : options.sampling[i]});
    if (turned) matrix = matrix.transpose();
    add_along(matrix, shape, axis, x, y, options.weights.empty() ? 1 : options.weights[i]);
  }
  return y;
}

template <class T>
std::vector<Matrix> gradient_matrices(const Gradient& options, const Shape& shape) {
  std::vector<Matrix> matrices;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    matrices.push_back(
        first_matrix(shape[axis], {.kind = options.kind,
                                   .order = options.order,
                                   .edge = options.edge,
                                   .sampling = options.sampling.empty() ? 1 : options.sampling[axis]}));
  return matrices;
}

template <class T>
std::vector<T> naive_gradient(const std::vector<Matrix>& matrices, const Shape& shape,
                              const std::vector<T>& x) {
  std::vector<T> y;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::vector<T> member = apply_along(matrices[axis], shape, static_cast<int>(axis), x);
    y.insert(y.end(), member.begin(), member.end());
  }
  return y;
}

template <class T>
std::vector<T> naive_divergence(const std::vector<Matrix>& matrices, const Shape& shape,
                                const std::vector<T>& y) {
  const std::size_t size = y.size() / shape.size();
  std::vector<T> x(size, T(0));
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    add_along(matrices[axis].transpose(), shape, static_cast<int>(axis),
              std::vector<T>(y.begin() + static_cast<std::ptrdiff_t>(axis * size),
                             y.begin() + static_cast<std::ptrdiff_t>((axis + 1) * size)),
              x);
  return x;
}

template <class T>
class Fused : public testing::Test {};
TYPED_TEST_SUITE(Fused, ElementTypes);

TYPED_TEST(Fused, Laplacian) {
  using T = TypeParam;
  const std::vector<Laplacian> cases{
      {},
      {.axes = {0, 1, 2}, .weights = {1, 2, -3}, .sampling = {0.5, 0.75, 2}, .edge = true},
      {.axes = {2, 0}, .weights = {0.5, 1}},
      {.axes = {0, 1, 2}, .kind = Difference::forward},
      {.axes = {1, 0}, .sampling = {0.5, 2}, .kind = Difference::backward},
      {.axes = {1}}};
  on_ranks(
      [&](comm::Communicator& communicator) {
        const Shape shape{6, 5, 7};
        const comm::Communicator self = alone(communicator);
        for (const Layout& layout : layouts_of(shape, communicator.size()))
          for (std::size_t i = 0; i < cases.size(); ++i) {
            const AnyOperator<T> a = laplacian<T>(communicator, layout, cases[i]);
            const std::string what = fmt::format("Laplacian {} of {}", i, layout.describe());
            expect_operator<T, T>(
                a, [&](const std::vector<T>& x) { return naive_laplacian(cases[i], shape, x, false); },
                [&](const std::vector<T>& y) { return naive_laplacian(cases[i], shape, y, true); }, what);
            expect_same_bits(a, laplacian<T>(self, Layout::split(shape, 1), cases[i]), what);
          }
      },
      {1, 2, 3, 4, 6});
}

TYPED_TEST(Fused, Gradient) {
  using T = TypeParam;
  const std::vector<Gradient> cases{{},
                                    {.sampling = {0.5, 0.75, 2}, .edge = true},
                                    {.order = 5},
                                    {.sampling = {1, 1, 2}, .order = 5, .edge = true},
                                    {.kind = Difference::forward},
                                    {.sampling = {1, 2, 3}, .kind = Difference::backward}};
  on_ranks(
      [&](comm::Communicator& communicator) {
        const Shape shape{6, 5, 7};
        const comm::Communicator self = alone(communicator);
        for (const Layout& layout : layouts_of(shape, communicator.size()))
          for (std::size_t i = 0; i < cases.size(); ++i) {
            const AnyOperator<T> a = gradient<T>(communicator, layout, cases[i]);
            EXPECT_EQ(a.range().members().size(), 3u);
            const std::vector<Matrix> matrices = gradient_matrices<T>(cases[i], shape);
            const std::string what = fmt::format("gradient {} of {}", i, layout.describe());
            expect_operator<T, T>(
                a, [&](const std::vector<T>& x) { return naive_gradient(matrices, shape, x); },
                [&](const std::vector<T>& y) { return naive_divergence(matrices, shape, y); }, what);
            expect_same_bits(a, gradient<T>(self, Layout::split(shape, 1), cases[i]), what);
          }
      },
      {1, 2, 3, 4, 6});
}

TEST(Fused, FourAxesAndOne) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const Shape shape{3, 4, 3, 5};
        const Laplacian options{.axes = {0, 1, 2, 3}, .weights = {1, 2, 3, 4}, .edge = true};
        for (const Layout& layout : layouts_of(shape, communicator.size()))
          expect_operator<double, double>(
              laplacian<double>(communicator, layout, options),
              [&](const std::vector<double>& x) { return naive_laplacian(options, shape, x, false); },
              [&](const std::vector<double>& y) { return naive_laplacian(options, shape, y, true); },
              layout.describe());
        const Shape line{9};
        const std::vector<Matrix> matrices = gradient_matrices<double>({}, line);
        for (const Layout& layout : layouts_of(line, communicator.size()))
          expect_operator<double, double>(
              gradient<double>(communicator, layout),
              [&](const std::vector<double>& x) { return naive_gradient(matrices, line, x); },
              [&](const std::vector<double>& y) { return naive_divergence(matrices, line, y); },
              layout.describe());
      },
      {1, 2, 4});
}

TEST(Fused, OutputsLargerThanTheCaches) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const Shape shape{61, 83, 131};
        const Layout layout = Layout::split(shape, communicator.size());
        const Laplacian options{.axes = {0, 1, 2}, .weights = {1, 2, 3}, .edge = true};
        const AnyOperator<double> a = laplacian<double>(communicator, layout, options);
        std::vector<double> x;
        const std::vector<double> y = apply_to_random(a, 1, x);
        expect_close(y, naive_laplacian(options, shape, x, false), "Laplacian");
        const AnyOperator<double> g = gradient<double>(communicator, layout);
        const std::vector<Matrix> matrices = gradient_matrices<double>({}, shape);
        const std::vector<double> slopes = apply_to_random(g, 2, x);
        expect_close(slopes, naive_gradient(matrices, shape, x), "gradient");
        std::vector<double> back_in;
        const std::vector<double> back = apply_to_random(adjoint(g), 3, back_in);
        expect_close(back, naive_divergence(matrices, shape, back_in), "gradient, adjoint");
      },
      {1, 2});
}

TEST(FusedErrors, SayWhatIsAllowed) {
  on_ranks(
      [](comm::Communicator& c) {
        const Layout layout = Layout::split({7, 5}, c.size());
        expect_contains(error_of([&] { laplacian<double>(c, layout, {.weights = {1}}); }),
                        {"weights", "1", "2 axes"});
        expect_contains(error_of([&] { laplacian<double>(c, layout, {.axes = {0, -2}}); }), {"axis 0 twice"});
        expect_contains(error_of([&] { laplacian<double>(c, layout, {.axes = {}}); }), {"at least one axis"});
        expect_contains(error_of([&] {
                          gradient<double>(c, layout, {.sampling = {1, 2, 3}});
                        }),
                        {"sampling", "3"});
      },
      {1, 2});
}

}  // namespace
}  // namespace shoal::linop::checks
