// SPDX-License-Identifier: Apache-2.0
// solver_main TRANSPORT RANKS: the solvers on a transport that a launcher starts, against elimination and
// against the bits of the `threads` transport.
#include <fmt/format.h>

#include <cstdlib>

#include "shoal/linop/derivatives.h"
#include "shoal/solver/cgls.h"
#include "shoal/solver/ista.h"
#include "shoal/solver/lsqr.h"
#include "shoal/solver/power_iteration.h"
#include "shoal/solver/proximal/admm.h"
#include "shoal/solver/proximal/functions.h"
#include "shoal/solver/proximal/primal_dual.h"
#include "shoal/solver/proximal/proximal_gradient.h"
#include "solver/support.h"

namespace {

using namespace shoal;
using namespace shoal::solver;
using namespace shoal::solver::testing;

// All methods one after the other on a least-squares problem; their results, the same on every rank.
template <class T>
std::vector<std::vector<T>> solutions(comm::Communicator& world) {
  const Index rows = 6 + world.rank();
  const auto a = linop::vertical_stack<T>(world, {Dense<T>::numbered(rows, 7, world.rank())});
  const auto b = random_array<T>(world, a.range(), 3);
  const AnyOperator<T> normal = adjoint(a) * a;
  const DistributedArray<T> right = a.adjoint_of(b);
  const double tolerance = solving<T>;
  std::vector<Result<T>> results;
  results.push_back(cgls(a, b, {.tolerance = tolerance}));
  results.push_back(cgls(a, b, {.tolerance = tolerance, .variant = Variant::pipelined}));
  results.push_back(lsqr(a, b, {.tolerance = tolerance}));
  results.push_back(cg(normal, right, {.tolerance = 10 * tolerance}));
  results.push_back(cg(normal, right, {.tolerance = 10 * tolerance, .variant = Variant::pipelined}));
  const std::vector<T> expected = least_squares(linop::checks::dense_of(a), b.to_full(), 0);
  std::vector<std::vector<T>> all;
  for (const Result<T>& result : results) {
    EXPECT_EQ(result.stop, Stop::converged) << all.size() << ": " << to_string(result.stop);
    expect_close(result.x.to_full(), expected, std::to_string(all.size()), 100 * comparing<T>);
    check_replicas(result.x);
    all.push_back(result.x.to_full());
  }
  all.push_back(fista(a, b, {.epsilon = 0.3}).x.to_full());
  all.push_back({power_iteration(normal).value});

  const auto f = l2<T>({.op = a, .b = b});
  const DistributedArray<T> zero(world, a.domain());
  const auto sparse = proximal_gradient(f, l1<T>(0.3), zero, {.max_iterations = 5000});
  EXPECT_EQ(sparse.stop, Stop::converged) << to_string(sparse.stop);
  all.push_back(sparse.x.to_full());
  const auto admm = admm_l2(l1<T>(0.3), a, b, linop::identity<T>(world, a.domain()), zero,
                            {.max_iterations = 2000, .tau = 0.5, .tolerance = 1e-10});
  expect_close(admm.x.to_full(), all.back(), "ADMM and proximal gradient", 1e-6);

  // An image that is split: its total variation, with the gradient apart and within.
  const auto gradient = linop::gradient<T>(world, Layout::split({6, 5}, world.size()));
  const auto image = random_array<T>(world, gradient.domain(), 4);
  const auto dual = primal_dual(l2<T>({.b = image}), l21<T>(0.4), gradient, image,
                                {.max_iterations = 5000, .tolerance = 1e-12});
  DistributedArray<T> smooth = image;
  total_variation(gradient, {.sigma = 0.4, .tolerance = 1e-8, .iterations = 5000}).prox(image, 1, smooth);
  expect_close(smooth.to_full(), dual.x.to_full(), "total variation", 1e-6);
  all.push_back(smooth.to_full());
  return all;
}

int run(comm::Communicator& world, int ranks) {
  if (world.size() != ranks)
    fail(ErrorCode::invalid_argument, fmt::format("{} ranks instead of {}", world.size(), ranks));
  const auto real = solutions<double>(world);
  const auto complex = solutions<std::complex<double>>(world);
  comm::run_threads(ranks, [&](comm::Communicator& threads) {
    EXPECT_EQ(solutions<double>(threads), real) << "the bits of another transport";
    EXPECT_EQ(solutions<std::complex<double>>(threads), complex) << "the bits of another transport";
  });
  const int failures = world.all_reduce(::testing::Test::HasFailure() ? 1 : 0, comm::Reduction::sum);
  if (world.rank() == 0) fmt::print("solver: {} ranks, {} of them with failures\n", ranks, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const std::string transport = argc > 1 ? argv[1] : "threads";
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 1;
  try {
    return comm::run({.transport = transport, .threads = ranks},
                     [ranks](comm::Communicator& world) { return run(world, ranks); });
  } catch (const std::exception& error) {
    fmt::print(stderr, "solver_main: {}\n", error.what());
    return 1;
  }
}
