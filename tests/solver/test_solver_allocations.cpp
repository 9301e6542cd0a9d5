// SPDX-License-Identifier: Apache-2.0
// Steps after the first allocate nothing. This program counts what operator new gives out.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "shoal/comm/job.h"
#include "shoal/linop/local/matrix.h"
#include "shoal/linop/stacks.h"
#include "shoal/solver/cgls.h"
#include "shoal/solver/ista.h"
#include "shoal/solver/lsqr.h"

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

// A diagonal block on each rank; block_diagonal allocates nothing when it is applied.
AnyOperator<double> problem(const comm::Communicator& world) {
  std::vector<double> elements(36, 0.0);
  for (std::size_t i = 0; i < 6; ++i) elements[7 * i] = 1 + static_cast<double>(i) * 0.3;
  return linop::block_diagonal<double>(world, {linop::local::DenseMatrix<double>(6, 6, elements)});
}

long allocations_in_steps(comm::Communicator& world, std::unique_ptr<Solver<double>> solver,
                          const AnyOperator<double>& a) {
  DistributedArray<double> b(world, a.range());
  fill_normal(b, 1);
  solver->setup(b);
  solver->step();
  solver->step();
  const long before = allocations;
  for (int i = 0; i < 3; ++i) solver->step();
  const long after = allocations;
  EXPECT_EQ(solver->result().iterations, 5);
  return after - before;
}

TEST(Allocations, ThereAreNoneAfterTheFirstStep) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const auto a = problem(world);
    EXPECT_EQ(allocations_in_steps(world, make_cg(a, {.tolerance = 0}), a), 0) << "cg";
    EXPECT_EQ(allocations_in_steps(world, make_cgls(a, {.tolerance = 0}), a), 0) << "cgls";
    EXPECT_EQ(allocations_in_steps(world, make_cgls(a, {.tolerance = 0, .damping = 1}), a), 0) << "damped";
    EXPECT_EQ(allocations_in_steps(world, make_lsqr(a, {.tolerance = 0}), a), 0) << "lsqr";
    EXPECT_EQ(allocations_in_steps(world, make_ista(a, {.epsilon = 1e-3, .tolerance = 0}), a), 0) << "ista";
    EXPECT_EQ(allocations_in_steps(world, make_fista(a, {.epsilon = 1e-3, .tolerance = 0}), a), 0) << "fista";
  });
}

// A started communication is an object of its own: nothing else is allocated, whatever the size.
TEST(Allocations, PipelinedMethodsAllocateTheirRequestsAlone) {
  comm::run_threads(1, [](comm::Communicator& world) {
    const auto a = problem(world);
    std::vector<double> sum(1);
    world.all_reduce_async(sum, comm::Reduction::sum).wait();
    const long before = allocations;
    for (int i = 0; i < 3; ++i) world.all_reduce_async(sum, comm::Reduction::sum).wait();
    const long of_requests = allocations - before;
    EXPECT_EQ(allocations_in_steps(world, make_cg(a, {.tolerance = 0, .variant = Variant::pipelined}), a),
              of_requests);
    EXPECT_EQ(allocations_in_steps(world, make_cgls(a, {.tolerance = 0, .variant = Variant::pipelined}), a),
              of_requests);
  });
}

}  // namespace
}  // namespace shoal::solver
