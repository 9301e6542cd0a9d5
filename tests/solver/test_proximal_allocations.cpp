// SPDX-License-Identifier: Apache-2.0
// Steps of the proximal methods after the first allocate nothing. This program counts what operator new
// gives out.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "shoal/comm/job.h"
#include "shoal/linop/local/matrix.h"
#include "shoal/linop/stacks.h"
#include "shoal/solver/proximal/admm.h"
#include "shoal/solver/proximal/functions.h"
#include "shoal/solver/proximal/primal_dual.h"
#include "shoal/solver/proximal/proximal_gradient.h"

namespace {
thread_local long allocations = 0;  // of this rank
}

// (Out of line: the compiler would take free() for the wrong end of what it sees as new.)
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace shoal::solver {
namespace {

long allocations_in_steps(comm::Communicator& world, std::unique_ptr<ProximalMethod<double>> method) {
  method->setup(method->result().x);
  method->step();
  method->step();
  world.barrier();
  const long before = allocations;
  for (int i = 0; i < 3; ++i) method->step();
  world.barrier();
  EXPECT_EQ(method->result().iterations, 5);
  return allocations - before;
}

TEST(ProximalAllocations, ThereAreNoneAfterTheFirstStep) {
  comm::run_threads(2, [](comm::Communicator& world) {
    std::vector<double> elements(36, 0.1);
    for (std::size_t i = 0; i < 6; ++i) elements[7 * i] = 1 + static_cast<double>(i) * 0.3;
    const auto a = linop::block_diagonal<double>(world, {linop::local::DenseMatrix<double>(6, 6, elements)});
    DistributedArray<double> b(world, a.range());
    fill_normal(b, 1);
    const AnyProximal<double> f = l2<double>({.op = a, .b = b, .tolerance = 1e-3}), g = l1<double>(0.1);
    for (const Acceleration acceleration : {Acceleration::none, Acceleration::fista}) {
      EXPECT_EQ(allocations_in_steps(
                    world, make_proximal_gradient<double>(
                               world, a.domain(), f, g,
                               {.acceleration = acceleration, .backtracking = true, .tolerance = 0})),
                0)
          << "proximal gradient";
    }
    EXPECT_EQ(allocations_in_steps(world, make_admm_l2<double>(g, a, b, a, {.tolerance = 0})), 0) << "admm";
    EXPECT_EQ(allocations_in_steps(world, make_primal_dual<double>(f, g, a, {.tolerance = 0})), 0)
        << "primal-dual";
    const AnyProximal<double> pair = separable_sum<double>({box<double>(-1, 1), l21<double>(0.1)});
    const Layout row = Layout::split({4}, 2);
    const auto identity = linop::identity<double>(world, Layout::stack({row, Layout::stack({row, row})}));
    DistributedArray<double> linear(world, identity.domain());
    fill_normal(linear, 2);
    EXPECT_EQ(allocations_in_steps(
                  world, make_primal_dual<double>(pair, pair, identity,
                                                  {.tau = {0.01}, .linear = linear, .tolerance = 0})),
              0)
        << "a sum of functions";
  });
}

}  // namespace
}  // namespace shoal::solver
