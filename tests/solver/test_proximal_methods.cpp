// SPDX-License-Identifier: Apache-2.0
// Proximal gradient, ADMM and primal-dual: closed forms, direct solutions, and how they stop.
#include <gtest/gtest.h>

#include "shoal/linop/derivatives.h"
#include "shoal/solver/proximal/admm.h"
#include "shoal/solver/proximal/functions.h"
#include "shoal/solver/proximal/primal_dual.h"
#include "shoal/solver/proximal/proximal_gradient.h"
#include "solver/support.h"

namespace shoal::solver {
namespace {

using namespace testing;

template <class T>
class ProximalMethodOf : public ::testing::Test {};
using DoubleTypes = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(ProximalMethodOf, DoubleTypes);
class ProximalMethods : public ::testing::Test {};

constexpr Acceleration accelerations[] = {Acceleration::none, Acceleration::fista,
                                          Acceleration::vandenberghe};

// min |b - Q x|^2 / 2 + 0.8 |x|_1 for unitary Q is the soft threshold of Q^H b.
TYPED_TEST(ProximalMethodOf, SolvesUnitaryLasso) {
  using T = TypeParam;
  const Index n = 12;
  const Dense<T> matrix = reflection<T>(n);
  const std::vector<T> b = numbers<T>(n, 1);
  on_ranks(
      [&](comm::Communicator& world) {
        for (const Layout& layout : row_layouts(n, world.size())) {
          const auto a = gathered(world, matrix, layout, layout);
          const auto data = array_of(world, layout, b), x0 = array_of(world, layout, numbers<T>(n, 3));
          auto expected = a.adjoint_of(data);
          l1<T>(0.8).prox(expected, 1, expected);
          const AnyProximal<T> f = l2<T>({.op = a, .b = data}), g = l1<T>(0.4);
          const auto check = [&](const ProximalResult<T>& result, const std::string& what) {
            EXPECT_EQ(result.stop, Stop::converged) << what;
            expect_close(result.x.to_full(), expected.to_full(), what + " " + layout.describe(), 1e-7);
            EXPECT_NEAR(result.history.back(), f.value(result.x) + 2 * g.value(result.x), 1e-9) << what;
            EXPECT_EQ(result.history.size(), static_cast<std::size_t>(result.iterations) + 1);
          };
          for (const Acceleration acceleration : accelerations)
            for (const bool backtracking : {false, true})
              check(proximal_gradient(f, g, x0,
                                      {.max_iterations = 2000,
                                       .epsilon = {9, 2},
                                       .tau = backtracking ? 16.0 : 0.0,
                                       .acceleration = acceleration,
                                       .backtracking = backtracking}),
                    "proximal gradient");
          check(proximal_gradient(f, g, x0, {.max_iterations = 1000, .epsilon = {2}, .relaxation = 0.7}),
                "relaxed");
        }
      },
      {1, 2, 3});
}

// A constraint that the start breaks: the objective is infinite there, and is none of the stops' business.
TEST_F(ProximalMethods, ProjectToABox) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({4}, 2);
    Dense<double> matrix(4, 4);
    for (Index i = 0; i < 4; ++i) matrix.at(i, i) = 1.0 / static_cast<double>(i + 1);
    const auto a = gathered(world, matrix, layout, layout);
    const auto b = array_of(world, layout, std::vector<double>{1, -2, 0.1, 4}),
               x0 = array_of(world, layout, std::vector<double>{9, 9, 9, 9});
    const std::vector<double> expected{1, -1, 0.3, 2};
    const AnyProximal<double> f = l2<double>({.op = a, .b = b}), inside = box<double>(-1, 2);
    const auto gradient = proximal_gradient(f, inside, x0, {.max_iterations = 3000});
    EXPECT_EQ(gradient.history.front(), HUGE_VAL);
    EXPECT_LT(gradient.history.back(), 10);
    expect_close(gradient.x.to_full(), expected, "proximal gradient", 1e-7);
    const auto identity = linop::identity<double>(world, layout);
    const auto admm = admm_l2(inside, a, b, identity, x0, {.max_iterations = 3000, .tau = 3});
    EXPECT_EQ(admm.stop, Stop::converged);
    expect_close(admm.x.to_full(), expected, "admm", 1e-7);
    const auto dual = primal_dual(inside, l2<double>({.b = b}), a, x0, {.max_iterations = 5000});
    EXPECT_EQ(dual.stop, Stop::converged);
    expect_close(dual.x.to_full(), expected, "primal-dual", 1e-7);
  });
}

// Two levels a < c of n0 and n1 samples: total variation brings them nearer, to a + w / n0 and c - w / n1.
TEST_F(ProximalMethods, DenoiseAStep) {
  const Index n0 = 5, n1 = 8;
  const double weight = 0.5;
  std::vector<double> step(5, 1.0), expected(5, 1 + weight / 5);
  step.resize(13, 2.5);
  expected.resize(13, 2.5 - weight / 8);
  on_ranks(
      [&](comm::Communicator& world) {
        std::vector<Index> uneven(static_cast<std::size_t>(world.size()), 0);
        uneven.back() = n0 + n1;
        for (const Layout& layout :
             {Layout::split({n0 + n1}, world.size()), Layout::split_unevenly({n0 + n1}, uneven)}) {
          const auto d = linop::gradient<double>(world, layout, {.kind = linop::Difference::forward});
          const auto one = linop::identity<double>(world, layout);
          const auto b = array_of(world, layout, step), zero = zeros_like(b);
          const auto g = l21<double>(weight);
          const auto admm = admm_l2(g, one, b, d, zero, {.max_iterations = 500, .tau = 0.3});
          EXPECT_EQ(admm.stop, Stop::converged) << layout.describe();
          expect_close(admm.x.to_full(), expected, "admm", 1e-6);
          EXPECT_NEAR(admm.history.back(),
                      g.value(*admm.auxiliary) + weight * weight / 2 * (1.0 / 5 + 1.0 / 8), 1e-6);
          const auto dual = primal_dual(l2<double>({.b = b}), g, d, zero, {.max_iterations = 3000});
          EXPECT_EQ(dual.stop, Stop::converged) << layout.describe();
          expect_close(dual.x.to_full(), expected, "primal-dual", 1e-6);
          EXPECT_NEAR(dual.history.back(), admm.history.back(), 1e-6);
        }
      },
      {1, 2, 3, 4});
}

// min |b - M x|^2 / 2 + sigma / 2 |A x - c|^2 + re<l, x>, against its normal equations.
TYPED_TEST(ProximalMethodOf, SolvesAQuadraticProblem) {
  using T = TypeParam;
  const Index n = 5, rows = 7, others = 4;
  const double sigma = 0.6;
  const Dense<T> m = Dense<T>::numbered(rows, n, 1), a = Dense<T>::numbered(others, n, 2);
  const std::vector<T> b = numbers<T>(rows, 1), c = numbers<T>(others, 2), l = numbers<T>(n, 3);
  const auto direct = [&](bool with_linear) {
    std::vector<T> right(static_cast<std::size_t>(n)), more = right;
    m.conjugate_transpose().apply(b, right);
    a.conjugate_transpose().apply(c, more);
    for (std::size_t i = 0; i < right.size(); ++i) right[i] += sigma * more[i] - (with_linear ? l[i] : T(0));
    return eliminate(sum(m.conjugate_transpose() * m, T(sigma), a.conjugate_transpose() * a), right);
  };
  const std::vector<T> expected = direct(false), tilted = direct(true);
  on_ranks(
      [&](comm::Communicator& world) {
        const auto domains = row_layouts(n, world.size()), ranges = row_layouts(rows, world.size()),
                   seconds = row_layouts(others, world.size());
        for (std::size_t i = 0; i < domains.size(); ++i) {
          const auto op = gathered(world, m, domains[i], ranges[(i + 1) % 4]);
          const auto second = gathered(world, a, domains[i], seconds[(i + 2) % 4]);
          const auto data = array_of(world, op.range(), b), x0 = array_of(world, op.domain(), l);
          const auto z0 = array_of(world, second.range(), numbers<T>(others, 5));
          const auto g = l2<T>({.b = array_of(world, second.range(), c), .sigma = sigma});
          const auto check = [&](const ProximalResult<T>& result, const std::vector<T>& x, const char* what) {
            EXPECT_EQ(result.stop, Stop::converged) << what << " " << domains[i].describe();
            expect_close(result.x.to_full(), x, what + domains[i].describe(), 1e-6);
          };
          const AdmmL2Options<T> options{
              .max_iterations = 2000, .inner_iterations = 10, .inner_tolerance = 1e-13};
          AdmmL2Options<T> g_first = options;
          g_first.g_first = true;
          const auto admm = admm_l2(g, op, data, second, x0, options);
          check(admm, expected, "admm");
          expect_close(admm.auxiliary->to_full(), second(admm.x).to_full(), "z = A x", 1e-6);
          check(admm_l2(g, op, data, second, x0, z0, options), expected, "admm from z0");
          check(admm_l2(g, op, data, second, x0, z0, g_first), expected, "admm, g first");
          const auto f = l2<T>({.op = op, .b = data, .tolerance = 1e-13});
          PrimalDualOptions<T> dual{.max_iterations = 5000, .tau = {0.2}, .linear = x0};
          check(primal_dual(f, g, second, x0, dual), tilted, "primal-dual");
          dual.g_first = false;
          check(primal_dual(f, g, second, x0, z0, dual), tilted, "primal-dual, x first");
        }
      },
      {1, 3});
}

ProximalResult<double> run(std::unique_ptr<ProximalMethod<double>> method,
                           const DistributedArray<double>& x0) {
  method->setup(x0);
  while (method->step()) {
  }
  return std::move(*method).finish();
}

// All methods on one problem of 9 elements.
struct Maker {
  const char* name;
  std::function<std::unique_ptr<ProximalMethod<double>>(
      const AnyOperator<double>&, const DistributedArray<double>& b, int max_iterations, Callback<double>)>
      make;
};

const std::vector<Maker>& makers() {
  static const std::vector<Maker> all{
      {"proximal gradient",
       [](const auto& a, const auto& b, int iterations, Callback<double> callback) {
         return make_proximal_gradient<double>(
             a.communicator(), a.domain(), l2<double>({.op = a, .b = b}), l1<double>(0.1),
             {.max_iterations = iterations, .tau = 0.02, .tolerance = 0, .callback = callback});
       }},
      {"accelerated",
       [](const auto& a, const auto& b, int iterations, Callback<double> callback) {
         return make_proximal_gradient<double>(a.communicator(), a.domain(), l2<double>({.op = a, .b = b}),
                                               l1<double>(0.1),
                                               {.max_iterations = iterations,
                                                .acceleration = Acceleration::fista,
                                                .backtracking = true,
                                                .tolerance = 0,
                                                .callback = callback});
       }},
      {"admm",
       [](const auto& a, const auto& b, int iterations, Callback<double> callback) {
         return make_admm_l2<double>(l1<double>(0.1), a, b,
                                     linop::identity<double>(a.communicator(), a.domain()),
                                     {.max_iterations = iterations, .tolerance = 0, .callback = callback});
       }},
      {"primal-dual",
       [](const auto& a, const auto& b, int iterations, Callback<double> callback) {
         return make_primal_dual<double>(
             l2<double>({.b = b}), l1<double>(0.1), a,
             {.max_iterations = iterations, .tau = {0.1}, .mu = {0.1}, .tolerance = 0, .callback = callback});
       }},
  };
  return all;
}

void for_each_method(const std::function<void(const Maker&, const AnyOperator<double>&,
                                              const DistributedArray<double>& b)>& body) {
  for (const Maker& maker : makers()) {
    SCOPED_TRACE(maker.name);
    comm::run_threads(3, [&](comm::Communicator& world) {
      const Layout layout = Layout::split({9}, 3);
      body(maker, gathered(world, Dense<double>::numbered(9, 9, 2), layout, layout),
           array_of(world, layout, numbers<double>(9, 1)));
    });
  }
}

TEST_F(ProximalMethods, StopAtTheLimitOrAsked) {
  for_each_method([](const Maker& maker, const auto& a, const auto& b) {
    const auto x0 = zeros_like(b);
    const auto limited = run(maker.make(a, b, 7, {}), x0);
    EXPECT_EQ(limited.stop, Stop::iteration_limit);
    EXPECT_EQ(limited.iterations, 7);
    EXPECT_EQ(limited.history.size(), 8U);
    int calls = 0;
    const auto asked =
        run(maker.make(a, b, 7,
                       [&](const Iteration<double>& now) {
                         EXPECT_EQ(now.number, ++calls);
                         EXPECT_EQ(now.cost, limited.history.at(static_cast<std::size_t>(calls)));
                         return calls == 4 ? Next::stop : Next::go_on;
                       }),
            x0);
    EXPECT_EQ(asked.stop, Stop::callback);
    EXPECT_EQ(asked.iterations, 4);
    const auto none = run(maker.make(a, b, 0, {}), x0);
    EXPECT_EQ(none.stop, Stop::iteration_limit);
    EXPECT_EQ(none.x.to_full(), x0.to_full());
  });
}

TEST_F(ProximalMethods, StepByStepGiveTheSameBits) {
  for_each_method([](const Maker& maker, const auto& a, const auto& b) {
    auto x0 = array_of(b.communicator(), b.layout(), numbers<double>(9, 4));
    const auto before = x0.to_full(), b_before = b.to_full();
    const auto whole = run(maker.make(a, b, 6, {}), x0);
    EXPECT_EQ(x0.to_full(), before);
    EXPECT_EQ(b.to_full(), b_before);
    // A start that is not finite leaves nothing behind.
    auto method = maker.make(a, b, 6, {});
    auto bad = x0;
    bad.fill(std::nan(""));
    method->setup(bad);
    EXPECT_FALSE(method->step());
    EXPECT_EQ(method->result().stop, Stop::non_finite);
    method->setup(x0);
    int steps = 0;
    while (method->step()) EXPECT_EQ(method->result().iterations, ++steps);
    const auto by_hand = std::move(*method).finish();
    EXPECT_EQ(steps, 6);
    EXPECT_EQ(by_hand.x.to_full(), whole.x.to_full());
    EXPECT_EQ(by_hand.history, whole.history);
    EXPECT_EQ(by_hand.residual_norm, whole.residual_norm);
  });
}

// One NaN, on rank 2, in the data: all ranks stop at once and know where it is.
TEST_F(ProximalMethods, StopAtNumbersThatAreNotFinite) {
  comm::run_threads(3, [](comm::Communicator& world) {
    const Layout layout = Layout::split({9}, 3);
    const auto a = linop::block_diagonal<double>(world, {Dense<double>::numbered(3, 3, 1)});
    auto b = array_of(world, layout, numbers<double>(9, 1));
    const auto x0 = zeros_like(b);
    if (world.rank() == 2) b[1] = std::nan("");
    for (const Maker& maker : makers()) {
      const auto result = run(maker.make(a, b, 50, {}), x0);
      EXPECT_EQ(result.stop, Stop::non_finite) << maker.name;
      EXPECT_LT(result.iterations, 2) << maker.name;
      EXPECT_EQ(result.non_finite_rank, 2) << maker.name;
    }
  });
}

TEST_F(ProximalMethods, BacktrackingFindsItsStep) {
  for_each_method([](const Maker& maker, const auto& a, const auto& b) {
    if (std::string(maker.name) != "accelerated") return;
    const AnyProximal<double> f = l2<double>({.op = a, .b = b}), g = l1<double>(0.1);
    const auto x0 = zeros_like(b);
    ProximalGradientOptions<double> options{.max_iterations = 300, .tau = 1e6, .backtracking = true};
    const auto found = proximal_gradient(f, g, x0, options);
    for (std::size_t i = 1; i < found.history.size(); ++i)
      EXPECT_LE(found.history[i], found.history[i - 1] * (1 + 1e-12)) << "the objective never grows";
    options.max_backtracks = 3;
    EXPECT_EQ(proximal_gradient(f, g, x0, options).stop, Stop::breakdown);
    options.backtracking = false;  // and a step too long diverges
    options.tau = 10;
    EXPECT_EQ(proximal_gradient(f, g, x0, options).stop, Stop::non_finite);
  });
}

TEST_F(ProximalMethods, StopWhereTheObjectiveStandsStill) {
  for_each_method([](const Maker& maker, const auto& a, const auto& b) {
    if (std::string(maker.name) != "proximal gradient") return;
    const auto result =
        proximal_gradient<double>(l2<double>({.op = a, .b = b}), l1<double>(0.1), zeros_like(b),
                                  {.max_iterations = 5000, .tolerance = 0, .cost_tolerance = 1e-5});
    EXPECT_EQ(result.stop, Stop::converged);
    const auto& h = result.history;
    for (std::size_t i = 1; i < h.size(); ++i)
      EXPECT_EQ(std::abs(h[i] - h[i - 1]) <= 1e-5 * h[i - 1], i + 1 == h.size()) << i;
  });
}

// Iterations as written in a reference of pylops-mpi's order: z before x, and x before z, for a given z0.
TEST_F(ProximalMethods, AdmmTakesItsStepsInOrder) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({2}, 2);
    const auto one = linop::identity<double>(world, layout);
    const auto b = array_of(world, layout, std::vector<double>{3, -1}),
               x0 = array_of(world, layout, std::vector<double>{1, 1}),
               z0 = array_of(world, layout, std::vector<double>{2, 2});
    // tau = 1: x = (b + z - u) / 2; z = threshold of x + u by 1/2; u = x - z.
    const AnyProximal<double> g = l1<double>(0.5);
    const auto x_first = admm_l2(g, one, b, one, x0, z0, {.max_iterations = 1});
    expect_close(x_first.x.to_full(), std::vector<double>{2.5, 0.5}, "x", 1e-12);
    expect_close(x_first.auxiliary->to_full(), std::vector<double>{2, 0}, "z", 1e-12);
    EXPECT_NEAR(x_first.residual_norm, std::sqrt(0.5), 1e-12);
    EXPECT_NEAR(x_first.history.back(), (0.25 + 2.25) / 2 + 1, 1e-12);
    const auto second = admm_l2(g, one, b, one, x0, z0, {.max_iterations = 2});
    expect_close(second.x.to_full(), std::vector<double>{2.25, -0.75}, "x", 1e-12);
    const auto z_first = admm_l2(g, one, b, one, x0, z0, {.max_iterations = 1, .g_first = true});
    expect_close(z_first.auxiliary->to_full(), std::vector<double>{0.5, 0.5}, "z", 1e-12);
    expect_close(z_first.x.to_full(), std::vector<double>{1.75, -0.25}, "x", 1e-12);
  });
}

// f(x) = |x - 1|^2 / 2, half a step each: from y to (1 + y) / 2.
TEST_F(ProximalMethods, AcceleratesAsWritten) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const auto b = array_of(world, Layout::replicated({1}, 2), std::vector<double>{1});
    const auto third = [&](Acceleration acceleration) {
      return proximal_gradient<double>(l2<double>({.b = b}), l1<double>(0), zeros_like(b),
                                       {.max_iterations = 3, .tau = 0.5, .acceleration = acceleration})
          .x[0];
    };
    const double t1 = (1 + std::sqrt(5.0)) / 2, t2 = (1 + std::sqrt(1 + 4 * t1 * t1)) / 2;
    EXPECT_NEAR(third(Acceleration::none), 0.875, 1e-14);
    EXPECT_NEAR(third(Acceleration::vandenberghe), (1.75 + 0.25 * 0.25) / 2, 1e-14);
    EXPECT_NEAR(third(Acceleration::fista), (1.75 + (t1 - 1) / t2 * 0.25) / 2, 1e-14);
  });
}

// f = |x - 1|^2 / 2, g = |y|, A = 2, tau = 1/4, mu = 1/2, from x = 1, y = 0:
// y = clip(0 + 1/2 2) = 1, x = prox(1 - 1/4 2) = (1/2 + 1/4) / (1 + 1/4) = 0.6, x' = 0.2.
TEST_F(ProximalMethods, PrimalDualTakesItsStepsAsWritten) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::replicated({1}, 2);
    const auto b = array_of(world, layout, std::vector<double>{1});
    const AnyOperator<double> a = 2.0 * linop::identity<double>(world, layout);
    PrimalDualOptions<double> options{.max_iterations = 1, .tau = {0.25}, .mu = {0.5}};
    const auto f = l2<double>({.b = b}), g = l1<double>();
    const auto first = primal_dual(f, g, a, b, options);
    EXPECT_NEAR(first.x[0], 0.6, 1e-14);
    EXPECT_NEAR((*first.auxiliary)[0], 1, 1e-14);
    EXPECT_NEAR(first.residual_norm, std::sqrt(0.4 * 0.4 / 0.25 + 1 / 0.5), 1e-14);
    EXPECT_NEAR(first.history.back(), 0.4 * 0.4 / 2 + 1.2, 1e-14);
    // Second: y = clip(1 + 1/2 2 0.2) = 1, x = (0.6 - 1/2 + 1/4) / (5/4) = 0.28.
    options.max_iterations = 2;
    const auto second = primal_dual(f, g, a, b, options);
    EXPECT_NEAR(second.x[0], 0.28, 1e-14);
    EXPECT_NEAR(second.residual_norm, 0.32 / 0.5, 1e-14);
    options.g_first = false;  // x = (1 + 1/4) / (5/4) = 1, x' = 1, y = clip(1) = 1
    EXPECT_NEAR(primal_dual(f, g, a, b, options).x[0], 0.6, 1e-14);
  });
}

TEST_F(ProximalMethods, RefuseWhatMakesNoSense) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({6}, 2), other = Layout::split({5}, 2);
    const DistributedArray<double> x(world, layout), y(world, other);
    const auto one = linop::identity<double>(world, layout), five = linop::identity<double>(world, other);
    const AnyProximal<double> f = l2<double>({}), g = l1<double>();
    const auto refused = [](auto&& call, const std::vector<std::string>& words) {
      const std::string message = error_of(call);
      for (const std::string& word : words)
        EXPECT_NE(message.find(word), std::string::npos) << message << " lacks " << word;
    };
    EXPECT_NE(
        error_of([&] { (void)proximal_gradient(g, g, x, {}); }, ErrorCode::unsupported).find("gradient"),
        std::string::npos);
    refused([&] { (void)proximal_gradient(f, g, x, {.epsilon = {}}); }, {"epsilon"});
    refused([&] { (void)proximal_gradient(f, g, x, {.tau = -1}); }, {"tau is -1"});
    refused([&] { (void)proximal_gradient(f, g, x, {.shrink = 1}); }, {"shrink is 1"});
    refused(
        [&] { (void)proximal_gradient(f, g, x, {.acceleration = Acceleration::fista, .relaxation = 0.5}); },
        {"relaxation"});
    refused([&] { (void)admm_l2(g, one, x, one, x, {.tau = 0}); }, {"tau is 0"});
    refused([&] { (void)admm_l2(g, one, y, one, x, {}); }, {"b", "6", "5"});
    refused([&] { (void)admm_l2(g, one, x, five, x, {}); }, {"domains", "6", "5"});
    refused([&] { (void)admm_l2(g, one, x, one, y, {}); }, {"start", "6", "5"});
    refused([&] { (void)admm_l2(g, one, x, one, x, y, {}); }, {"auxiliary", "6", "5"});
    refused([&] { (void)primal_dual(f, g, one, x, {.tau = {0.0}}); }, {"tau"});
    refused([&] { (void)primal_dual(f, g, one, x, {.linear = y}); }, {"6", "5"});
    refused([&] { make_proximal_gradient(world, layout, f, g)->setup(x, x); }, {"auxiliary"});
  });
}

}  // namespace
}  // namespace shoal::solver
