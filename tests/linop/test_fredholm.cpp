// SPDX-License-Identifier: Apache-2.0
// The Fredholm operator against a product of each slice, with slices in balance, uneven and missing.
#include <fmt/format.h>

#include "linop/operator_checks.h"
#include "shoal/linop/fredholm.h"

namespace shoal::linop::checks {
namespace {

template <class T>
class FredholmOperator : public testing::Test {};
TYPED_TEST_SUITE(FredholmOperator, ElementTypes);

// x -> the slices' products with x, for kernels [slices, rows, cols] one after the other.
template <class T>
std::vector<T> slice_by_slice(const std::vector<Dense<T>>& kernels, Index nz, const std::vector<T>& x) {
  std::vector<T> y;
  auto begin = x.begin();
  for (const Dense<T>& kernel : kernels) {
    Dense<T> slice(kernel.width, nz);
    slice.elements.assign(begin, begin + kernel.width * nz);
    begin += kernel.width * nz;
    const Dense<T> product = kernel * slice;
    y.insert(y.end(), product.elements.begin(), product.elements.end());
  }
  return y;
}

template <class T>
void expect_fredholm(comm::Communicator& communicator, const Layout& layout, Index nz) {
  std::vector<Dense<T>> kernels, adjoints;
  std::vector<T> full;
  for (int s = 0; s < layout.shape()[0]; ++s) {
    kernels.push_back(Dense<T>::numbered(layout.shape()[1], layout.shape()[2], s));
    adjoints.push_back(kernels.back().conjugate_transpose());
    full.insert(full.end(), kernels.back().elements.begin(), kernels.back().elements.end());
  }
  for (const Slices slices : {Slices::split, Slices::replicated}) {
    const auto g = fredholm<T>(DistributedArray<T>::from_full(communicator, layout, full), nz, slices);
    const std::string what = fmt::format("Fredholm of {}, nz {}, {}", layout.describe(), nz,
                                         slices == Slices::split ? "split" : "replicated");
    EXPECT_EQ(g.domain().is_replicated(), slices == Slices::replicated);
    EXPECT_EQ(g.domain().shape(), (Shape{layout.shape()[0], layout.shape()[2], nz}));
    EXPECT_EQ(g.range().shape(), (Shape{layout.shape()[0], layout.shape()[1], nz}));
    expect_operator<T, T>(
        g, [&](const std::vector<T>& x) { return slice_by_slice(kernels, nz, x); },
        [&](const std::vector<T>& y) { return slice_by_slice(adjoints, nz, y); }, what);
    if (slices == Slices::replicated) check_replicas(g(random_array<T>(communicator, g.domain(), 2)));
  }
}

TYPED_TEST(FredholmOperator, SlicesInBalanceUnevenAndMissing) {
  on_ranks([](comm::Communicator& communicator) {
    const int ranks = communicator.size();
    for (const Index slices : {1, 5, 7}) {
      for (const Index nz : {1, 4})
        expect_fredholm<TypeParam>(communicator, Layout::split({slices, 3, 5}, ranks), nz);
      std::vector<Index> extents(static_cast<std::size_t>(ranks), 0);
      extents.back() = slices;
      expect_fredholm<TypeParam>(communicator, Layout::split_unevenly({slices, 4, 2}, extents), 3);
    }
    for (const Shape& shape : {Shape{0, 3, 2}, Shape{4, 0, 2}, Shape{4, 3, 0}, Shape{1, 1, 1}})
      expect_fredholm<TypeParam>(communicator, Layout::split(shape, ranks), 2);
  });
}

TEST(FredholmErrors, SayWhatIsNeeded) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const int ranks = communicator.size();
        const auto of = [&](const Layout& layout, Index nz) {
          return error_of([&] { fredholm(DistributedArray<double>(communicator, layout), nz); });
        };
        expect_contains(of(Layout::split({4, 3, 2}, ranks, 1), 1), {"split along axis 0", "4×3×2"});
        expect_contains(of(Layout::replicated({4, 3, 2}, ranks), 1), {"replicated"});
        expect_contains(of(Layout::split({4, 3}, ranks), 1), {"4×3"});
        expect_contains(of(Layout::split({4, 3, 2}, ranks), 0), {"nz = 0"});
      },
      {1, 2});
}

}  // namespace
}  // namespace shoal::linop::checks
