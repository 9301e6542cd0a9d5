// SPDX-License-Identifier: Apache-2.0
#include "shoal/array/ghost_cells.h"

#include <algorithm>
#include <optional>

#include "array/support.h"

namespace shoal::array {
namespace {

using testing::expect_error;
using testing::filled;
using testing::for_each_type;
using testing::on_ranks;
using testing::value;

constexpr Boundary boundaries[] = {Boundary::none, Boundary::zero, Boundary::periodic, Boundary::clamp};

// Which element stands at `g` of an axis of extent n, if any.
std::optional<Index> element(Index g, Index n, Boundary boundary) {
  if (g >= 0 && g < n) return g;
  if (boundary == Boundary::periodic && n > 0) return ((g % n) + n) % n;
  if (boundary == Boundary::clamp && n > 0) return g < 0 ? 0 : n - 1;
  return std::nullopt;
}

// x + 100 y + 10000 z, so that a wrong cell tells where it came from.
double field(Index x, Index y, Index z) { return static_cast<double>(x + 100 * y + 10000 * z); }

template <class T>
DistributedArray<T> field_array(const comm::Communicator& communicator, const Layout& layout) {
  const Shape& shape = layout.shape();
  std::vector<T> full;
  for (Index x = 0; x < shape[0]; ++x)
    for (Index y = 0; y < shape[1]; ++y)
      for (Index z = 0; z < shape[2]; ++z) full.push_back(converted<T>(field(x, y, z)));
  return DistributedArray<T>::from_full(communicator, layout, full);
}

// What `cells` cells from global index `begin` of each axis hold, in C order.
template <class T>
std::vector<T> expected_cells(const Shape& shape, const Shape& begin, const Shape& cells, Boundary boundary) {
  std::vector<T> expected;
  for (Index x = 0; x < cells[0]; ++x)
    for (Index y = 0; y < cells[1]; ++y)
      for (Index z = 0; z < cells[2]; ++z) {
        const auto gx = element(begin[0] + x, shape[0], boundary),
                   gy = element(begin[1] + y, shape[1], boundary),
                   gz = element(begin[2] + z, shape[2], boundary);
        expected.push_back(gx && gy && gz ? converted<T>(field(*gx, *gy, *gz)) : T(0));
      }
  return expected;
}

template <class T>
T sum_of_products(comm::Communicator& communicator, std::span<const T> a, std::span<const T> b,
                  bool replicated) {
  T sum[1] = {T(0)};
  for (std::size_t i = 0; i < a.size(); ++i) sum[0] += a[i] * b[i];
  if (!replicated) communicator.all_reduce(std::span<T>(sum), comm::Reduction::sum);
  return sum[0];
}

template <class T>
std::vector<T> numbers(std::size_t n, Rank rank) {
  std::vector<T> all;
  for (std::size_t i = 0; i < n; ++i) all.push_back(value<T>(static_cast<Index>(i) + 31 * rank));
  return all;
}

template <class T>
void check_block(comm::Communicator& world, const Layout& layout, const Shape& before, const Shape& after,
                 Boundary boundary) {
  const Rank me = world.rank();
  GhostBlock<T> ghosts(world, layout, before, after, boundary);
  const Block block = layout.block(me);
  const Shape shape = ghosts.extended_shape(me), own_begin = ghosts.own_begin(me);
  Shape begin;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const Index end = block.begin[axis] + block.extent[axis], n = layout.shape()[axis];
    const bool cut = boundary == Boundary::none;
    const Index below = cut ? std::min(before[axis], block.begin[axis]) : before[axis];
    const Index above = cut ? std::min(after[axis], n - end) : after[axis];
    ASSERT_EQ(own_begin[axis], below);
    ASSERT_EQ(shape[axis], below + block.extent[axis] + above);
    begin.push_back(block.begin[axis] - below);
  }
  auto x = field_array<T>(world, layout);
  std::vector<T> extended(static_cast<std::size_t>(size_of_shape(shape)), T(-1));
  ghosts.exchange(x.local(), extended);
  ASSERT_EQ(extended, expected_cells<T>(layout.shape(), begin, shape, boundary));

  std::vector<T> cropped(x.local().size(), T(-1));
  ghosts.crop(extended, cropped);
  ASSERT_TRUE(std::equal(cropped.begin(), cropped.end(), x.local().begin()));

  // <E u, v> = <u, E^T v>, exactly, for whole numbers.
  const bool replicated = layout.is_replicated();
  const std::vector<T> u = numbers<T>(x.local().size(), replicated ? 0 : me);
  const std::vector<T> v = numbers<T>(extended.size(), replicated ? 5 : me + 5);
  std::vector<T> back(u.size(), T(-1));
  ghosts.exchange(u, extended);
  ghosts.exchange_adjoint(v, back);
  ASSERT_EQ(sum_of_products<T>(world, extended, v, replicated),
            sum_of_products<T>(world, u, back, replicated));
}

TEST(GhostBlock, EveryCellOnAGridOfThreeAxes) {
  for (const int ranks : {1, 6, 8})
    comm::run_threads(ranks, [](comm::Communicator& world) {
      const std::vector<int> grid = world.size() == 6   ? std::vector<int>{2, 1, 3}
                                    : world.size() == 8 ? std::vector<int>{2, 2, 2}
                                                        : std::vector<int>{1, 1, 1};
      for_each_type([&]<class T>() {
        const Layout layout = Layout::blocks({7, 5, 9}, grid);
        for (const Boundary boundary : boundaries) {
          check_block<T>(world, layout, {1, 1, 1}, {1, 1, 1}, boundary);
          check_block<T>(world, layout, {2, 0, 3}, {0, 1, 2}, boundary);
        }
      });
    });
}

TEST(GhostBlock, EveryLayoutAndWidthsOverSeveralNeighbours) {
  on_ranks([](comm::Communicator& world) {
    for (const Shape& shape : {Shape{7, 4, 3}, Shape{1, 2, 5}, Shape{0, 3, 2}})
      for (const Layout& layout : testing::layouts(shape, world.size()))
        for (const Boundary boundary : boundaries) {
          SCOPED_TRACE(layout.describe() + " boundary " + std::to_string(static_cast<int>(boundary)));
          check_block<double>(world, layout, {0, 0, 0}, {0, 0, 0}, boundary);
          check_block<double>(world, layout, {1, 2, 1}, {3, 0, 1}, boundary);
          check_block<double>(world, layout, {9, 0, 2}, {0, 6, 11}, boundary);
        }
  });
}

struct PlaneWidths {
  Index before, after;
};

template <class T>
void check_planes(comm::Communicator& world, const Layout& layout, int axis, PlaneWidths width,
                  Boundary boundary) {
  const Rank me = world.rank();
  const auto a = static_cast<std::size_t>(axis);
  GhostPlanes<T> ghosts(world, layout, axis - 3, width.before, width.after, boundary);
  const Block block = layout.block(me);
  const Index end = block.begin[a] + block.extent[a];
  const bool cut = boundary == Boundary::none;
  const Index below = cut ? std::min(width.before, block.begin[a]) : width.before;
  const Index above = cut ? std::min(width.after, layout.shape()[a] - end) : width.after;
  ASSERT_EQ(ghosts.before_width(), below);
  ASSERT_EQ(ghosts.after_width(), above);

  auto x = field_array<T>(world, layout);
  for (int times = 0; times < 2; ++times) {
    ghosts.start(x);
    expect_error(ErrorCode::invalid_argument, "under way", [&] { ghosts.start(x); });
    ghosts.finish();
  }
  Shape begin = block.begin, cells = block.extent;
  begin[a] = block.begin[a] - below;
  cells[a] = below;
  const std::vector<T> before(ghosts.before().begin(), ghosts.before().end());
  ASSERT_EQ(before, expected_cells<T>(layout.shape(), begin, cells, boundary));
  begin[a] = end;
  cells[a] = above;
  const std::vector<T> after(ghosts.after().begin(), ghosts.after().end());
  ASSERT_EQ(after, expected_cells<T>(layout.shape(), begin, cells, boundary));

  const bool replicated = layout.is_replicated();
  const std::vector<T> v = numbers<T>(before.size(), replicated ? 5 : me + 5);
  const std::vector<T> w = numbers<T>(after.size(), replicated ? 7 : me + 7);
  auto back = x;
  ghosts.add_back(v, w, back);
  const DistributedArray<T> added = back - x;
  ASSERT_EQ(
      sum_of_products<T>(world, before, v, replicated) + sum_of_products<T>(world, after, w, replicated),
      dotu(x, added));
}

TEST(GhostPlanes, EveryLayoutAxisAndBoundary) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      if (!std::is_same_v<T, double> && world.size() != 3) return;  // the type changes nothing but sizes
      for (const Shape& shape : {Shape{7, 4, 3}, Shape{1, 2, 5}, Shape{0, 3, 2}})
        for (const Layout& layout : testing::layouts(shape, world.size()))
          for (const Boundary boundary : boundaries)
            for (int axis = 0; axis < 3; ++axis)
              for (const PlaneWidths width : {PlaneWidths{1, 1}, PlaneWidths{2, 0}, PlaneWidths{0, 9}}) {
                SCOPED_TRACE(layout.describe() + " axis " + std::to_string(axis) + " boundary " +
                             std::to_string(static_cast<int>(boundary)));
                check_planes<T>(world, layout, axis, width, boundary);
              }
    });
  });
}

TEST(GhostPlanes, SeveralMayBeUnderWay) {
  comm::run_threads(6, [](comm::Communicator& world) {
    const Layout layout = Layout::blocks({7, 5, 9}, {2, 1, 3});
    const auto x = field_array<double>(world, layout);
    GhostPlanes<double> first(world, layout, 0, 1, 1, Boundary::periodic);
    GhostPlanes<double> second(world, layout, 2, 1, 1, Boundary::periodic);
    first.start(x);
    second.start(x);
    second.finish();
    first.finish();
    const Block block = layout.block(world.rank());
    EXPECT_EQ(first.before()[0], field((block.begin[0] + 6) % 7, block.begin[1], block.begin[2]));
    EXPECT_EQ(second.before()[0], field(block.begin[0], block.begin[1], (block.begin[2] + 8) % 9));
  });
}

TEST(GhostCells, RefuseWhatMakesNoSense) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({4, 4}, 2);
    const auto refused = [](const std::string& part, const std::function<void()>& call) {
      expect_error(ErrorCode::invalid_argument, part, call);
    };
    refused("axis 2 of 2", [&] { GhostPlanes<float>(world, layout, 2, 1, 1); });
    refused("width -1", [&] { GhostPlanes<float>(world, layout, 0, -1, 1); });
    refused("on a communicator of 2", [&] { GhostPlanes<float>(world, Layout::split({4}, 3), 0, 1, 1); });
    refused("1 widths before", [&] { GhostBlock<float>(world, layout, {1}, {1, 1}); });
    GhostPlanes<float> planes(world, layout, 0, 1, 1);
    refused("has been started", [&] { planes.finish(); });
    refused("ghost planes: the layouts differ", [&] {
      planes.start(DistributedArray<float>(world, Layout::split({5, 4}, 2)));
    });
    GhostBlock<float> block(world, layout, {1, 0}, {1, 0});
    std::vector<float> own(8), extended(5);
    refused("extended has 5 elements instead of 12", [&] { block.exchange(own, extended); });
    refused("own has 5", [&] { block.crop(own, extended); });
  });
}

}  // namespace
}  // namespace shoal::array
