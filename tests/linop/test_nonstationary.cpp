// SPDX-License-Identifier: Apache-2.0
// Non-stationary convolution against its definition, in every layout, also with parts shorter than the
// filters.
#include "linop/operator_checks.h"
#include "shoal/linop/convolution_operators.h"

namespace shoal::linop::checks {
namespace {

// y[j] = sum over i of h_i[j - i + length/2] x[i]; the filters by linear interpolation.
template <class T>
Dense<T> convolution_matrix(const std::vector<T>& filters, Index length, Index first, Index step, Index n) {
  const Index count = static_cast<Index>(filters.size()) / length;
  Dense<T> matrix(n, n);
  for (Index i = 0; i < n; ++i) {
    const double place = std::clamp(static_cast<double>(i - first) / static_cast<double>(step), 0.0,
                                    static_cast<double>(count - 1));
    const Index below = std::min(static_cast<Index>(place), count - 1),
                above = std::min(below + 1, count - 1);
    const auto weight = static_cast<Real<T>>(place - static_cast<double>(below));
    for (Index j = 0; j < n; ++j) {
      const Index k = j - i + length / 2;
      if (k < 0 || k >= length) continue;
      matrix.at(j, i) = (1 - weight) * filters[static_cast<std::size_t>(below * length + k)] +
                        weight * filters[static_cast<std::size_t>(above * length + k)];
    }
  }
  return matrix;
}

// The matrix along an axis of an array, as one of the whole array.
template <class T>
Dense<T> along(const Dense<T>& matrix, const Shape& shape, std::size_t axis) {
  Index outer = 1, inner = 1;
  for (std::size_t a = 0; a < axis; ++a) outer *= shape[a];
  for (std::size_t a = axis + 1; a < shape.size(); ++a) inner *= shape[a];
  const Index n = shape[axis];
  Dense<T> whole(outer * n * inner, outer * n * inner);
  for (Index o = 0; o < outer; ++o)
    for (Index c = 0; c < inner; ++c)
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j)
          whole.at((o * n + i) * inner + c, (o * n + j) * inner + c) = matrix.at(i, j);
  return whole;
}

template <class T>
class NonStationary : public testing::Test {};
TYPED_TEST_SUITE(NonStationary, ElementTypes);

TYPED_TEST(NonStationary, EveryAxisAndLayout) {
  using T = TypeParam;
  const Shape shape{5, 7, 3};
  for (const Index length : {1, 5, 9}) {
    const std::vector<T> filters = Dense<T>::numbered(3, length, 2).elements;
    const local::FilterBank<T> bank(filters, length, 1, 2);
    on_ranks([&](comm::Communicator& communicator) {
      for (const Layout& layout : layouts_of(shape, communicator.size()))
        for (int axis = 0; axis < 3; ++axis) {
          const Dense<T> matrix =
              along(convolution_matrix(filters, length, 1, 2, shape[static_cast<std::size_t>(axis)]), shape,
                    static_cast<std::size_t>(axis));
          const AnyOperator<T> a =
              nonstationary_convolution(communicator, layout, bank, axis == 2 ? -1 : axis);
          const auto times_matrix = [](const Dense<T>& m) {
            return [&m](const std::vector<T>& x) {
              std::vector<T> y(x.size());
              m.apply(x, y);
              return y;
            };
          };
          const Dense<T> back = matrix.conjugate_transpose();
          expect_operator<T, T>(a, times_matrix(matrix), times_matrix(back), "of " + layout.describe());
        }
    });
  }
}

TYPED_TEST(NonStationary, SameBitsOnAnyNumberOfRanks) {
  using T = TypeParam;
  on_ranks([&](comm::Communicator& communicator) {
    const local::FilterBank<T> bank(Dense<T>::numbered(4, 11, 1).elements, 11, 3, 10);
    const comm::Communicator self = alone(communicator);
    for (int axis = 0; axis < 2; ++axis)
      expect_same_bits(nonstationary_convolution(
                           communicator, Layout::split({41, 67}, communicator.size(), axis), bank, axis),
                       nonstationary_convolution(self, Layout::split({41, 67}, 1), bank, axis),
                       "convolution");
  });
}

}  // namespace
}  // namespace shoal::linop::checks
