// SPDX-License-Identifier: Apache-2.0
// Halos: every cell of extended blocks on grids of one to three dimensions, the adjoint that adds back, and
// the crop.
#include <fmt/format.h>

#include "linop/operator_checks.h"
#include "shoal/linop/halo.h"
#include "shoal/linop/stacks.h"

namespace shoal::linop::checks {
namespace {

struct Sides {
  std::vector<Index> before, after;
};

// The element that a cell of the extended array along one axis is a copy of; none: beyond the ends.
std::optional<Index> source_of(Index at, Index n, Boundary boundary) {
  if (at >= 0 && at < n) return at;
  if (boundary == Boundary::periodic && n > 0) return ((at % n) + n) % n;
  if (boundary == Boundary::clamp && n > 0) return std::clamp<Index>(at, 0, n - 1);
  return std::nullopt;
}

// This rank's extended block of the full array `x`, cell by cell.
template <class T>
std::vector<T> extended(const Layout& layout, Rank rank, const Sides& sides, Boundary boundary,
                        const std::vector<T>& x) {
  const Shape& shape = layout.shape();
  const array::Block block = layout.block(rank);
  Shape begin = block.begin, extent = block.extent;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    Index end = begin[a] + extent[a] + sides.after[a];
    begin[a] -= sides.before[a];
    if (boundary == Boundary::none) {
      begin[a] = std::max<Index>(0, begin[a]);
      end = std::min(end, shape[a]);
    }
    extent[a] = end - begin[a];
  }
  std::vector<T> cells;
  for (Index k = 0; k < array::size_of_shape(extent); ++k) {
    Index rest = k, at = 0, stride = 1;
    bool inside = true;
    for (std::size_t a = shape.size(); a-- > 0;) {
      const std::optional<Index> source = source_of(begin[a] + rest % extent[a], shape[a], boundary);
      rest /= extent[a];
      inside = inside && source.has_value();
      at += source.value_or(0) * stride;
      stride *= shape[a];
    }
    cells.push_back(inside ? x[static_cast<std::size_t>(at)] : T(0));
  }
  return cells;
}

template <class T>
void expect_halo(comm::Communicator& communicator, const Layout& layout, const std::vector<Index>& widths,
                 const Sides& sides, Boundary boundary) {
  const std::string what =
      fmt::format("halo of {} with boundary {}", layout.describe(), static_cast<int>(boundary));
  const Halo<T> h = halo<T>(communicator, layout, widths, boundary);
  const DistributedArray<T> x = random_array<T>(communicator, layout, 1);
  DistributedArray<T> y = poisoned<T>(communicator, h.extend.range());
  h.extend.apply(x, y);
  const std::vector<T> expected = extended(layout, communicator.rank(), sides, boundary, x.to_full());
  EXPECT_EQ(std::vector<T>(y.local().begin(), y.local().end()), expected)
      << what << " on rank " << communicator.rank();
  expect_adjoint(h.extend, what);
  expect_adjoint(h.crop, what + ", crop");
  DistributedArray<T> back = poisoned<T>(communicator, layout);
  h.crop.apply(y, back);
  EXPECT_EQ(back.to_full(), x.to_full()) << what << ": crop after extend";
}

constexpr Boundary boundaries[] = {Boundary::none, Boundary::zero, Boundary::periodic, Boundary::clamp};

template <class T>
class HaloOperator : public testing::Test {};
TYPED_TEST_SUITE(HaloOperator, ElementTypes);

TYPED_TEST(HaloOperator, SlabsAndBlocks) {
  on_ranks([](comm::Communicator& communicator) {
    for (const Layout& layout : layouts_of({7, 5, 9}, communicator.size())) {
      if (layout.is_replicated()) continue;
      for (const Boundary boundary : boundaries) {
        expect_halo<TypeParam>(communicator, layout, {2}, {{2, 2, 2}, {2, 2, 2}}, boundary);
        expect_halo<TypeParam>(communicator, layout, {1, 0, 3, 2, 0, 1}, {{1, 3, 0}, {0, 2, 1}}, boundary);
      }
    }
  });
}

// Rows of odd lengths, at all places within cache lines.
TEST(HaloOperator, LargerThanTheCaches) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const Layout first = Layout::split({121, 97, 101}, 2), last = Layout::split({121, 97, 101}, 2, 2);
        expect_halo<double>(communicator, first, {2}, {{2, 2, 2}, {2, 2, 2}}, Boundary::none);
        expect_halo<double>(communicator, last, {1, 0, 3, 2, 0, 1}, {{1, 3, 0}, {0, 2, 1}}, Boundary::clamp);
        expect_halo<double>(communicator, Layout::split({1200001}, 2), {3}, {{3}, {3}}, Boundary::none);
      },
      {2});
}

TEST(HaloOperator, ThreeDimensionalGrid) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const Layout layout = Layout::blocks({7, 5, 9}, {2, 1, 3});
        for (const Boundary boundary : boundaries) {
          expect_halo<double>(communicator, layout, {1}, {{1, 1, 1}, {1, 1, 1}}, boundary);
          expect_halo<double>(communicator, layout, {1, 2, 3}, {{1, 2, 3}, {1, 2, 3}}, boundary);
        }
        // f = x + 100 y + 10000 z: a cell tells where it comes from. The corner of rank 5 beyond rank 0's
        // block.
        std::vector<double> f;
        for (int x = 0; x < 7; ++x)
          for (int y = 0; y < 5; ++y)
            for (int z = 0; z < 9; ++z) f.push_back(x + 100 * y + 10000 * z);
        const Halo<double> h = halo<double>(communicator, layout, {1});
        const auto cells = h.extend(DistributedArray<double>::from_full(communicator, layout, f));
        if (communicator.rank() == 5) {
          EXPECT_EQ(cells[0], 3 + 10000 * 5);
        }
      },
      {6});
}

// Local operators that look beyond their block, block by block: a mean of three along the axis, periodic.
TEST(HaloOperator, SurroundsABlockDiagonal) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const Layout layout = Layout::split({13}, communicator.size());
        const Halo<double> h = halo<double>(communicator, layout, {1}, Boundary::periodic);
        const Index n = layout.local_size(communicator.rank()) + 2;
        Dense<double> mean(n, n);
        for (Index i = 1; i + 1 < n; ++i)
          for (Index j = i - 1; j <= i + 1; ++j) mean.at(i, j) = 1.0 / 3;
        const AnyOperator<double> smooth =
            h.crop *
            reshaped(block_diagonal<double>(communicator, {mean}), h.extend.range(), h.extend.range()) *
            h.extend;
        expect_adjoint(smooth, "smoothing");
        const DistributedArray<double> x = random_array<double>(communicator, layout, 1);
        const std::vector<double> full = x.to_full();
        std::vector<double> expected;
        for (std::size_t i = 0; i < 13; ++i)
          expected.push_back((full[(i + 12) % 13] + full[i] + full[(i + 1) % 13]) / 3);
        expect_close(smooth(x).to_full(), expected, "smoothing");
      },
      {1, 2, 3, 4});
}

TEST(HaloErrors, SayWhatIsAllowed) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const Layout layout = Layout::split({7, 5}, communicator.size());
        expect_contains(error_of([&] {
                          halo<double>(communicator, layout, {1, 2, 3});
                        }),
                        {"3 widths", "1, 2", "4"});
        expect_contains(error_of([&] { halo<double>(communicator, layout, {-1}); }), {"-1"});
      },
      {1, 2});
}

}  // namespace
}  // namespace shoal::linop::checks
