// SPDX-License-Identifier: Apache-2.0
// Making arrays, copies, views, members, and the way from and to the global array.
#include "shoal/array/distributed_array.h"

#include <set>

#include "array/support.h"

namespace shoal::array {
namespace {

using testing::expect_error;
using testing::filled;
using testing::for_each_type;
using testing::on_ranks;
using testing::values;

TEST(DistributedArray, FromFullAndBackIsTheIdentity) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      for (const Shape& shape :
           {Shape{7, 5, 9}, Shape{3}, Shape{world.size() - 1}, Shape{0, 4}, Shape{1, 1, 1, 2}})
        for (const Layout& layout : testing::layouts(shape, world.size())) {
          SCOPED_TRACE(layout.describe());
          const auto x = filled<T>(world, layout);
          EXPECT_EQ(x.to_full(), values<T>(layout.size()));
          const Rank root = world.size() / 2;
          EXPECT_EQ(x.to_full_on(root), values<T>(world.rank() == root ? layout.size() : 0));
        }
    });
  });
}

TEST(DistributedArray, EveryScatterAndGatherOfOneAxis) {
  for (int ranks = 1; ranks <= 9; ++ranks)
    comm::run_threads(ranks, [](comm::Communicator& world) {
      for (Index n = 0; n <= 40; ++n) {
        const auto x = filled<float>(world, Layout::split({n}, world.size()));
        ASSERT_EQ(x.to_full(), values<float>(n));
      }
    });
}

TEST(DistributedArray, LocalElementsAreTheBlockInCOrder) {
  comm::run_threads(6, [](comm::Communicator& world) {
    const auto x = filled<double>(world, Layout::blocks({7, 5, 9}, {2, 1, 3}));
    const Block block = x.layout().block(world.rank());
    EXPECT_EQ(x.local_shape(), block.extent);
    std::size_t at = 0;
    for (Index i = 0; i < block.extent[0]; ++i)
      for (Index j = 0; j < block.extent[1]; ++j)
        for (Index k = 0; k < block.extent[2]; ++k)
          EXPECT_EQ(x[at++], testing::value<double>(((block.begin[0] + i) * 5 + j) * 9 + block.begin[2] + k));
    EXPECT_EQ(at, x.local().size());
  });
}

TEST(DistributedArray, NewArraysAreZeroAndAligned) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const DistributedArray<double> x(world, Layout::split({1 << 20}, 2));  // in large pages
    const DistributedArray<double> small(world, Layout::split({3}, 2));
    EXPECT_EQ(x.local().size(), std::size_t{1} << 19);
    EXPECT_EQ(norm(x, norm_zero), 0);
    EXPECT_EQ(norm(small, norm_zero), 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.local().data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small.local().data()) % 64, 0u);
  });
}

TEST(DistributedArray, CopiesOwnTheirMemory) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({6}, 2);
    auto x = filled<double>(world, layout);
    auto y = x;
    y.fill(1);
    EXPECT_EQ(x.to_full(), values<double>(6));
    const double* memory = y.local().data();
    y = x;
    EXPECT_EQ(y.local().data(), memory);
    EXPECT_EQ(y.to_full(), values<double>(6));
    DistributedArray<double> other(world, Layout::replicated({2}, 2));
    other = x;
    EXPECT_EQ(other.layout(), layout);
    EXPECT_EQ(other.to_full(), values<double>(6));
    const auto moved = std::move(y);
    EXPECT_EQ(moved.local().data(), memory);
    y = x;  // what has been moved from can be assigned
    EXPECT_EQ(y.to_full(), values<double>(6));
  });
}

TEST(DistributedArray, WhatHasBeenMovedFromSaysSo) {
  comm::run_threads(2, [](comm::Communicator& world) {
    auto x = filled<double>(world, Layout::split({6}, 2));
    const auto y = std::move(x);
    EXPECT_EQ(x.layout().describe(), "nothing (it has been moved from)");
    EXPECT_EQ(x.size(), 0);
    EXPECT_TRUE(x.local().empty());
    expect_error(ErrorCode::invalid_argument, "moved from", [&] { (void)dot(y, x); });
    expect_error(ErrorCode::invalid_argument, "moved from", [&] { (void)norm(x); });
    expect_error(ErrorCode::invalid_argument, "moved from", [&] { (void)x.local_shape(); });
    expect_error(ErrorCode::invalid_argument, "moved from", [&] { DistributedArray<double> copy(x); });
    x = y;
    EXPECT_EQ(x.to_full(), values<double>(6));
  });
}

TEST(DistributedArray, AdoptedMemoryIsTheCallers) {
  comm::run_threads(3, [](comm::Communicator& world) {
    const Layout layout = Layout::split({7}, 3);
    std::vector<float> memory(static_cast<std::size_t>(layout.local_size(world.rank())), 2);
    auto x = DistributedArray<float>::adopt(world, layout, memory);
    x = x * 2 + 1;
    EXPECT_EQ(memory, std::vector<float>(memory.size(), 5));
    x = filled<float>(world, layout);  // a moved value does not change where a view looks
    EXPECT_EQ(x.local().data(), memory.data());
    EXPECT_EQ(x.to_full(), values<float>(7));
    auto copy = x;
    EXPECT_NE(copy.local().data(), memory.data());
    expect_error(ErrorCode::invalid_argument, "assignment to a view",
                 [&] { x = filled<float>(world, Layout::replicated({7}, 3)); });
    expect_error(ErrorCode::invalid_argument, "1 elements adopted", [&] {
      DistributedArray<float>::adopt(world, Layout::split({70}, 3), std::span(memory).first(1));
    });
    std::vector<float> local(memory.begin(), memory.end());
    const float* before = local.data();
    const auto owned = DistributedArray<float>::from_local(world, layout, std::move(local));
    EXPECT_EQ(owned.local().data(), before);
    EXPECT_EQ(owned.to_full(), values<float>(7));
  });
}

TEST(DistributedArray, StacksAndTheirMembers) {
  on_ranks([](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      const int ranks = world.size();
      const auto a = filled<T>(world, Layout::split({5, 2}, ranks, 1));
      const auto b = filled<T>(world, Layout::replicated({3}, ranks));
      const DistributedArray<T>* const both[] = {&a, &b};
      auto inner = stack<T>(both);
      const DistributedArray<T>* const nested[] = {&b, &inner};
      auto x = stack<T>(nested);
      EXPECT_EQ(x.size(), 16);
      std::vector<T> expected = values<T>(3);
      for (const T& v : values<T>(10)) expected.push_back(v);
      for (const T& v : values<T>(3)) expected.push_back(v);
      EXPECT_EQ(x.to_full(), expected);
      EXPECT_EQ(x.to_full_on(0), world.rank() == 0 ? expected : std::vector<T>());
      EXPECT_EQ((DistributedArray<T>::from_full(world, x.layout(), expected).to_full()), expected);

      x.member(1).member(0) = a + a;  // writes into the stack
      const auto copy = x.member(1).member(1);
      x.member(1).member(1) = b * T(3);
      for (std::size_t i = 3; i < 13; ++i) expected[i] = T(2) * expected[i];
      for (std::size_t i = 13; i < 16; ++i) expected[i] = T(3) * expected[i];
      EXPECT_EQ(x.to_full(), expected);
      EXPECT_EQ(copy.to_full(), values<T>(3));
      auto moved = std::move(x);
      EXPECT_EQ(moved.member(1).to_full(), std::vector<T>(expected.begin() + 3, expected.end()));
      expect_error(ErrorCode::invalid_argument, "member 2", [&] { (void)moved.member(2); });
    });
  });
}

TEST(DistributedArray, AMemberStaysTheMemberWhereItsStackIsMovedInto) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout inner = Layout::stack({Layout::split({4}, 2), Layout::replicated({1}, 2)});
    const Layout layout = Layout::stack({Layout::replicated({3}, 2), inner});
    DistributedArray<double> x(world, layout);
    DistributedArray<double>& member = x.member(1).member(0);
    auto other = filled<double>(world, layout);
    x = std::move(other);
    EXPECT_EQ(&x.member(1).member(0), &member);
    EXPECT_EQ(member.local().data(), x.local().data() + 3);
    member.fill(7);
    EXPECT_EQ(x.to_full()[3], 7);
    other = x;  // what has been moved from can be assigned
    EXPECT_EQ(other.member(1).member(0).to_full(), std::vector<double>(4, 7));
  });
}

// On one rank slabs along any axis are equal, but what is made of them is not.
TEST(DistributedArray, AssignmentKeepsTheSplitAxis) {
  comm::run_threads(1, [](comm::Communicator& world) {
    auto x = filled<double>(world, Layout::split({2, 3}, 1, 0));
    const auto y = filled<double>(world, Layout::split({2, 3}, 1, 1));
    x = y;
    EXPECT_EQ(x.layout().split_axis(), 0);
    x = filled<double>(world, y.layout());
    EXPECT_EQ(x.layout().split_axis(), 0);
  });
}

TEST(DistributedArray, AMaskKeepsReductionsWithinTheColor) {
  comm::run_threads(4, [](comm::Communicator& world) {
    const Layout layout = Layout::split({8}, 4);
    DistributedArray<double> x(world, layout);
    x.fill(world.rank() + 1);
    const int colors[] = {0, 1, 0, 1};
    x.set_mask(colors);
    const double expected = world.rank() % 2 == 0 ? 2 * (1 + 9) : 2 * (4 + 16);
    EXPECT_EQ(dot(x, x), expected);
    for (int i = 0; i < 1000; ++i) {  // results share the communicator
      const DistributedArray<double> y = x + x;
      ASSERT_EQ(&y.reduction_communicator(), &x.reduction_communicator());
      if (i == 0) {
        EXPECT_EQ(dot(y, y), 4 * expected);
      }
    }
    EXPECT_EQ(norm(DistributedArray<double>(zeros_like(x) + x), norm_max), world.rank() % 2 == 0 ? 3 : 4);
    const int too_few[] = {0, 1};
    expect_error(ErrorCode::invalid_argument, "2 colors for 4 ranks", [&] { x.set_mask(too_few); });
  });
}

TEST(DistributedArray, RandomNumbersDoNotDependOnTheNumberOfRanks) {
  for_each_type([]<class T>() {
    std::vector<T> uniform, normal;
    for (const int ranks : testing::rank_counts)
      comm::run_threads(ranks, [&](comm::Communicator& world) {
        for (const Layout& layout : testing::layouts({11, 4, 3}, ranks)) {
          DistributedArray<T> x(world, Layout::stack({Layout::replicated({5}, ranks), layout}),
                                uninitialised);
          fill_uniform(x, 42);
          const std::vector<T> first = x.to_full();
          fill_normal(x, 42);
          const std::vector<T> second = x.to_full();
          if (ranks == 1 && uniform.empty()) {
            uniform = first;
            normal = second;
          }
          EXPECT_EQ(first, uniform);
          EXPECT_EQ(second, normal);
        }
      });
    std::set<std::pair<Real<T>, Real<T>>> distinct;
    for (const T& v : uniform) distinct.emplace(std::real(v), std::imag(v));
    EXPECT_EQ(distinct.size(), uniform.size());
  });
}

TEST(DistributedArray, RandomNumbersHaveTheirMeanAndVariance) {
  comm::run_threads(2, [](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      constexpr Index n = 100000;
      const Layout layout = Layout::split({n}, 2);
      DistributedArray<T> x(world, layout), one(world, layout);
      one.fill(T(1));
      fill_uniform(x, 7);
      // Each part: mean 1/2, mean square 1/3; the standard deviations of these are below 0.001.
      const T mean = dot(one, x) / static_cast<Real<T>>(n);
      EXPECT_NEAR(std::real(mean), 0.5, 0.005);
      constexpr int parts = is_complex<T> ? 2 : 1;
      EXPECT_NEAR(norm(x) * norm(x) / n, parts / 3.0, 0.005 * parts);
      EXPECT_LT(norm(DistributedArray<Real<T>>(real(x)), norm_max), 1);
      DistributedArray<T> other(world, layout);
      fill_uniform(other, 8);
      EXPECT_NEAR(std::abs(dot(DistributedArray<T>(x - mean), DistributedArray<T>(other - mean))) / n, 0,
                  0.003);  // seeds are independent
      fill_normal(x, 7);
      EXPECT_NEAR(std::abs(dot(one, x)) / n, 0, 0.02);
      EXPECT_NEAR(norm(x) * norm(x) / n, parts, 0.03 * parts);
    });
  });
}

TEST(DistributedArray, ReplicasThatDrift) {
  comm::run_threads(3, [](comm::Communicator& world) {
    for_each_type([&]<class T>() {
      const Layout replicated = Layout::replicated({200, 1000}, 3);
      const Layout layout = Layout::stack({Layout::split({5}, 3), replicated});
      DistributedArray<T> x(world, layout);
      x.member(0).fill(static_cast<T>(static_cast<float>(world.rank())));
      check_replicas(x);
      if (world.rank() == 2) x.member(1)[123456] = T(1);
      expect_error(ErrorCode::invalid_argument, "rank 2 has another value at index 123456",
                   [&] { check_replicas(x); });
      if (world.rank() == 1) x.member(1)[7] = T(1);
      expect_error(ErrorCode::invalid_argument, "rank 1 has another value at index 7",
                   [&] { check_replicas(x); });
    });
  });
}

TEST(DistributedArray, RefusesWhatDoesNotFit) {
  comm::run_threads(2, [](comm::Communicator& world) {
    expect_error(ErrorCode::invalid_argument, "for 3 ranks on a communicator of 2",
                 [&] { DistributedArray<float>(world, Layout::split({4}, 3)); });
    expect_error(ErrorCode::invalid_argument, "3 elements for a global array", [&] {
      DistributedArray<float>::from_full(world, Layout::split({4}, 2), std::vector<float>(3));
    });
    expect_error(ErrorCode::invalid_argument, "root 2 of 2",
                 [&] { (void)DistributedArray<float>(world, Layout::split({4}, 2)).to_full_on(2); });
    expect_error(ErrorCode::out_of_memory, "fit",
                 [&] { DistributedArray<float>(world, Layout::replicated({Index{1} << 61}, 2)); });
    expect_error(ErrorCode::out_of_memory, "fit",
                 [&] { DistributedArray<float>(world, Layout::replicated({Index{1} << 62}, 2)); });
  });
}

}  // namespace
}  // namespace shoal::array
