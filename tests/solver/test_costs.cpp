// SPDX-License-Identifier: Apache-2.0
// What an iteration costs in applications of the operator, as the headers say, and that the scale of a
// problem is no cost.
#include <gtest/gtest.h>

#include "shoal/solver/cgls.h"
#include "shoal/solver/ista.h"
#include "shoal/solver/lsqr.h"
#include "shoal/solver/proximal/functions.h"
#include "shoal/solver/proximal/primal_dual.h"
#include "shoal/solver/proximal/proximal_gradient.h"
#include "solver/support.h"

namespace shoal::solver {
namespace {

using namespace testing;

struct Applications {
  int forward = 0, adjoint = 0;
  bool operator==(const Applications&) const = default;
};
void PrintTo(const Applications& n, std::ostream* out) { *out << n.forward << " and " << n.adjoint; }

// Counts how often an operator is applied.
struct Counted {
  using domain_type = double;
  using range_type = double;
  const comm::Communicator& communicator() const { return a.communicator(); }
  const Layout& domain() const { return a.domain(); }
  const Layout& range() const { return a.range(); }
  void apply(const DistributedArray<double>& x, DistributedArray<double>& y) const {
    ++count->forward;
    a.apply(x, y);
  }
  void apply_adjoint(const DistributedArray<double>& y, DistributedArray<double>& x) const {
    ++count->adjoint;
    a.apply_adjoint(y, x);
  }
  AnyOperator<double> a;
  std::shared_ptr<Applications> count = std::make_shared<Applications>();
};

Dense<double> definite(Index n, double scale = 1) {
  std::vector<double> eigenvalues;
  for (Index i = 0; i < n; ++i) eigenvalues.push_back(scale * (1 + 0.37 * static_cast<double>(i)));
  return with_eigenvalues(eigenvalues);
}

// Of three iterations after the second.
template <class Method>
Applications applications(const Counted& a, Method&& method) {
  method.step();
  method.step();
  *a.count = {};
  for (int i = 0; i < 3; ++i) method.step();
  return *a.count;
}

TEST(Costs, ApplicationsOfAnIterationAreThoseOfTheHeaders) {
  comm::run_threads(1, [](comm::Communicator& world) {
    const Layout layout = Layout::split({12}, 1);
    const Counted a{gathered(world, definite(12), layout, layout)};
    const AnyOperator<double> op = a;
    const auto b = array_of(world, layout, numbers<double>(12, 1));
    const auto expect = [&](std::unique_ptr<Solver<double>> solver, const Applications& each,
                            const char* name) {
      solver->setup(b);
      EXPECT_EQ(applications(a, *solver), (Applications{3 * each.forward, 3 * each.adjoint})) << name;
    };
    expect(make_cg<double>(op, {.tolerance = 0}), {1, 0}, "cg");
    expect(make_cg<double>(op, {.tolerance = 0, .variant = Variant::pipelined}), {1, 0}, "pipelined cg");
    expect(make_cgls<double>(op, {.tolerance = 0}), {1, 1}, "cgls");
    expect(make_cgls<double>(op, {.tolerance = 0, .damping = 0.5}), {1, 1}, "damped cgls");
    expect(make_cgls<double>(op, {.tolerance = 0, .variant = Variant::pipelined}), {1, 1}, "pipelined cgls");
    expect(make_lsqr<double>(op, {.tolerance = 0}), {1, 1}, "lsqr");
    expect(make_ista<double>(op, {.step = 0.01, .tolerance = 0}), {1, 1}, "ista");
    expect(make_fista<double>(op, {.step = 0.01, .tolerance = 0}), {1, 1}, "fista");

    const auto f = l2<double>({.op = op, .b = b});
    const auto g = l1<double>(0.1);
    const auto expect_proximal = [&](std::unique_ptr<ProximalMethod<double>> method, const Applications& each,
                                     const char* name) {
      method->setup(b);
      EXPECT_EQ(applications(a, *method), (Applications{3 * each.forward, 3 * each.adjoint})) << name;
    };
    expect_proximal(make_proximal_gradient<double>(world, layout, f, g, {.tau = 0.01, .tolerance = 0}),
                    {1, 1}, "proximal gradient");
    expect_proximal(
        make_proximal_gradient<double>(world, layout, f, g,
                                       {.tau = 0.01, .acceleration = Acceleration::fista, .tolerance = 0}),
        {2, 1}, "accelerated");
    expect_proximal(
        make_primal_dual<double>(g, l2<double>({.b = b}), op, {.tau = {0.05}, .mu = {0.05}, .tolerance = 0}),
        {1, 1}, "primal-dual");
  });
}

// A and b times s, and epsilon times s^2: the same minimiser after as many iterations.
TEST(Costs, TheScaleOfASparseProblemDoesNotMatter) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({12}, 2);
    for (const bool accelerated : {false, true}) {
      const auto run = [&](double scale) {
        const auto a = gathered(world, definite(12, scale), layout, layout);
        const auto b = array_of(world, layout, scaled(numbers<double>(12, 1), scale));
        const IstaOptions<double> options{
            .max_iterations = 3000, .epsilon = 0.5 * scale * scale, .tolerance = 1e-9};
        const auto result = accelerated ? fista(a, b, options) : ista(a, b, options);
        EXPECT_EQ(result.stop, Stop::converged) << scale;
        return std::pair(result.iterations, result.x.to_full());
      };
      const auto [plain, x] = run(1);
      EXPECT_GT(plain, 5);
      for (const double scale : {1e-60, 1e60}) {
        const auto [iterations, x_scaled] = run(scale);
        EXPECT_EQ(iterations, plain) << scale;
        expect_close(x_scaled, x, "the minimiser", 1e-9);
      }
    }
  });
}

TEST(Costs, TheScaleOfAnOperatorDoesNotMatterToPowerIteration) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({12}, 2);
    const auto run = [&](double scale) {
      return power_iteration(gathered(world, definite(12, scale), layout, layout));
    };
    const auto plain = run(1);
    EXPECT_EQ(plain.stop, Stop::converged);
    for (const double scale : {1e-60, 1e60}) {
      const auto pair = run(scale);
      EXPECT_EQ(pair.iterations, plain.iterations) << scale;
      EXPECT_NEAR(pair.value / scale, plain.value, 1e-9 * plain.value) << scale;
    }
  });
}

}  // namespace
}  // namespace shoal::solver
