// SPDX-License-Identifier: Apache-2.0
// Functions with a proximal operator: against their definition, closed forms, and themselves on one rank.
#include <gtest/gtest.h>

#include "shoal/solver/proximal/functions.h"
#include "solver/support.h"

namespace shoal::solver {
namespace {

using namespace testing;

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
class ProximalOf : public ::testing::Test {};
TYPED_TEST_SUITE(ProximalOf, ElementTypes);
class Proximal : public ::testing::Test {};

template <class T>
struct Case {
  std::string name;
  AnyProximal<T> f;
  bool on_pairs = false;   // of stacks of two members of equal layout
  bool on_blocks = false;  // of rows in multiples of 6
};

// All for 12 elements. b and q are in `layout`.
template <class T>
std::vector<Case<T>> cases(const comm::Communicator& communicator, const Layout& layout) {
  const auto b = array_of(communicator, layout, numbers<T>(12, 4)),
             q = array_of(communicator, layout, numbers<T>(12, 2));
  std::vector<Case<T>> all{{"l0", l0<T>(0.7)},
                           {"l1", l1<T>(0.7)},
                           {"l2", l2<T>({.sigma = 1.3})},
                           {"l2 with b and q", l2<T>({.b = b, .q = q, .sigma = 1.3, .alpha = 0.4})},
                           {"l21", l21<T>(0.9), true},
                           {"sum", separable_sum<T>({l1<T>(0.5), l2<T>({.sigma = 2})}), true},
                           {"nuclear", nuclear<T>(2, 3, 0.8), false, true}};
  if constexpr (!is_complex<T>) all.push_back({"box", box<T>(-1, 1.5)});
  return all;
}

Layout pair_of(const Layout& half) { return Layout::stack({half, half}); }

template <class T>
double objective(const AnyProximal<T>& f, const DistributedArray<T>& x, double tau,
                 const DistributedArray<T>& z) {
  const DistributedArray<T> difference = z - x;
  const double distance = norm(difference);
  return distance * distance / 2 + tau * f.value(z);
}

// Nothing near (and of l0 far, too) is better than what prox() gives.
TYPED_TEST(ProximalOf, Minimises) {
  using T = TypeParam;
  comm::run_threads(1, [](comm::Communicator& world) {
    const Layout row = Layout::split({12}, 1);
    for (const Case<T>& c : cases<T>(world, row))
      for (const double tau : {0.2, 1.4}) {
        const Layout layout = c.on_pairs ? pair_of(Layout::split({6}, 1)) : row;
        const auto x = array_of(world, layout, numbers<T>(12, 1));
        auto z = poisoned<T>(world, layout), trial = x, direction = x;
        c.f.prox(x, tau, z);
        const double least = objective(c.f, x, tau, z);
        EXPECT_TRUE(std::isfinite(least)) << c.name;
        const double slack = (sizeof(Real<T>) == 4 ? 1e-5 : 1e-13) * (1 + least);
        for (int k = 0; k < 200; ++k)
          for (const double length : {1.0, 0.1, 1e-3}) {
            fill_normal(direction, static_cast<std::uint64_t>(k));
            const auto only = static_cast<std::size_t>(k % 12);
            if (k % 2 == 0)  // along one element, also exactly to zero
              for (std::size_t i = 0; i < 12; ++i)
                if (i != only) direction[i] = T(0);
            trial = z + T(static_cast<Real<T>>(length)) * direction;
            if (k % 4 == 0) trial[only] = T(0);
            EXPECT_LE(least, objective(c.f, x, tau, trial) + slack) << c.name << " " << tau;
          }
        // and it is no worse than any choice of zeros
        for (unsigned zeros = 0; c.name == "l0" && zeros < 4096; ++zeros) {
          for (std::size_t i = 0; i < 12; ++i) trial[i] = (zeros >> i & 1) != 0 ? T(0) : x[i];
          EXPECT_LE(least, objective(c.f, x, tau, trial) + slack);
        }
      }
  });
}

// The same in every layout, of any number of ranks, in place too; x is not changed.
TYPED_TEST(ProximalOf, IsTheSameOnManyRanks) {
  using T = TypeParam;
  const std::vector<T> values = numbers<T>(12, 1);
  on_ranks(
      [&](comm::Communicator& world) {
        comm::Communicator self = linop::checks::alone(world);
        const auto serial = cases<T>(self, Layout::split({12}, 1));
        for (const Layout& row : row_layouts(12, world.size())) {
          const auto distributed = cases<T>(world, row);
          for (std::size_t i = 0; i < serial.size(); ++i) {
            const Case<T>& c = distributed[i];
            if (c.on_blocks && !row.is_stack() && !row.is_replicated()) continue;  // splits blocks
            if (c.on_blocks && row.is_stack()) continue;
            const auto halves = row_layouts(6, world.size());
            const Layout layout = c.on_pairs ? pair_of(halves[i % halves.size()]) : row;
            const Layout one = c.on_pairs ? pair_of(Layout::split({6}, 1)) : Layout::split({12}, 1);
            const std::string what = c.name + " " + layout.describe();
            const auto x_one = array_of(self, one, values);
            auto z_one = x_one;
            serial[i].f.prox(x_one, 0.6, z_one);
            auto x = array_of(world, layout, values);
            auto z = poisoned<T>(world, layout);
            c.f.prox(x, 0.6, z);
            EXPECT_EQ(z.to_full(), z_one.to_full()) << what;
            EXPECT_EQ(x.to_full(), values) << what;
            const double expected = serial[i].f.value(x_one);
            EXPECT_TRUE(expected == c.f.value(x) || std::abs(expected - c.f.value(x)) < 1e-5 * expected)
                << what << ": " << c.f.value(x) << " instead of " << expected;
            c.f.prox(x, 0.6, x);
            EXPECT_EQ(x.to_full(), z_one.to_full()) << what << ", in place";
          }
        }
      },
      {1, 2, 3, 4});
}

// Of norms the dual proximal operator is the projection to the dual norm's ball.
TYPED_TEST(ProximalOf, DualIsAProjection) {
  using T = TypeParam;
  const std::vector<T> values = numbers<T>(12, 5);
  comm::run_threads(2, [&](comm::Communicator& world) {
    const auto project = [](T& element, double magnitude, double radius) {
      if (magnitude > radius) element *= static_cast<Real<T>>(radius / magnitude);
    };
    for (const double tau : {0.3, 2.0}) {
      std::vector<T> expected = values;
      for (T& element : expected) project(element, std::abs(element), 0.7);
      const auto x = array_of(world, Layout::split({12}, 2), values);
      auto y = poisoned<T>(world, x.layout());
      l1<T>(0.7).prox_dual(x, tau, y);
      expect_close(y.to_full(), expected, "l1");

      expected = values;
      for (std::size_t i = 0; i < 6; ++i) {
        const double magnitude = std::hypot(std::abs(values[i]), std::abs(values[i + 6]));
        project(expected[i], magnitude, 0.9);
        project(expected[i + 6], magnitude, 0.9);
      }
      const auto pair = array_of(world, pair_of(Layout::split({6}, 2)), values);
      auto y2 = poisoned<T>(world, pair.layout());
      l21<T>(0.9).prox_dual(pair, tau, y2);
      expect_close(y2.to_full(), expected, "l21");

      // f* is |y|^2 / (2 sigma) + <b, y>.
      const auto b = array_of(world, x.layout(), numbers<T>(12, 2));
      l2<T>({.b = b, .sigma = 1.5}).prox_dual(x, tau, y);
      const DistributedArray<T> closed =
          T(static_cast<Real<T>>(1 / (1 + tau / 1.5))) * (x - T(static_cast<Real<T>>(tau)) * b);
      expect_close(y.to_full(), closed.to_full(), "l2");
    }
  });
}

// With an operator: (tau sigma A^H A + I) z = x - tau alpha q + tau sigma A^H b.
TYPED_TEST(ProximalOf, L2SolvesForItsOperator) {
  using T = TypeParam;
  const Index rows = 7, cols = 5;
  const Dense<T> matrix = Dense<T>::numbered(rows, cols, 3), adjoint = matrix.conjugate_transpose();
  const std::vector<T> x = numbers<T>(cols, 1), q = numbers<T>(cols, 3), b = numbers<T>(rows, 2);
  const double sigma = 0.6, alpha = 0.3, tau = 0.5;
  std::vector<T> right(static_cast<std::size_t>(cols));
  adjoint.apply(b, right);
  for (std::size_t i = 0; i < right.size(); ++i)
    right[i] = x[i] - static_cast<Real<T>>(tau * alpha) * q[i] + static_cast<Real<T>>(tau * sigma) * right[i];
  const std::vector<T> expected =
      eliminate(sum(identity_matrix<T>(cols), T(static_cast<Real<T>>(tau * sigma)), adjoint * matrix), right);
  on_ranks(
      [&](comm::Communicator& world) {
        const auto ranges = row_layouts(rows, world.size()), domains = row_layouts(cols, world.size());
        for (std::size_t i = 0; i < domains.size(); ++i)
          for (const L2Solver solver : {L2Solver::cgls, L2Solver::cg}) {
            const auto a = gathered(world, matrix, domains[i], ranges[(i + 1) % ranges.size()]);
            const auto data = array_of(world, a.range(), b), start = array_of(world, a.domain(), x),
                       linear = array_of(world, a.domain(), q);
            L2<T> problem{.op = a, .b = data, .q = linear, .sigma = sigma, .alpha = alpha, .solver = solver};
            auto z = poisoned<T>(world, a.domain());
            l2(problem).prox(start, tau, z);
            expect_close(z.to_full(), expected, a.domain().describe(), comparing<T>);

            // Value and gradient.
            const AnyProximal<T> f = l2(problem);
            EXPECT_TRUE(f.has_gradient());
            const DistributedArray<T> residual = a(start) - data;
            const double r = norm(residual);
            const double value =
                sigma / 2 * r * r + alpha * static_cast<double>(std::real(dot(linear, start)));
            EXPECT_NEAR(f.value(start), value, 1e-5 * std::abs(value));
            (void)f.gradient(start, z);
            const DistributedArray<T> gradient = T(static_cast<Real<T>>(sigma)) * a.adjoint_of(residual) +
                                                 T(static_cast<Real<T>>(alpha)) * linear;
            expect_close(z.to_full(), gradient.to_full(), "gradient", comparing<T>);
            EXPECT_EQ(start.to_full(), x);
          }
      },
      {1, 2, 3, 4});
}

TEST_F(Proximal, L2ComesNearerWithEachWarmCall) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({6}, 2);
    const auto a = gathered(world, Dense<double>::numbered(6, 6, 1), layout, layout);
    const auto b = array_of(world, layout, numbers<double>(6, 2)),
               x = array_of(world, layout, numbers<double>(6, 1));
    const auto exact = [&] {
      auto z = x;
      l2<double>({.op = a, .b = b, .iterations = 50}).prox(x, 3, z);
      return z;
    }();
    const auto distance = [&](const AnyProximal<double>& f, int calls) {
      auto z = x;
      for (int i = 0; i < calls; ++i) f.prox(x, 3, z);
      const DistributedArray<double> difference = z - exact;
      return norm(difference);
    };
    const L2<double> two{.op = a, .b = b, .iterations = 2};
    EXPECT_GT(distance(l2(two), 1), 1e-3);
    EXPECT_LT(distance(l2(two), 100), 1e-6);
    L2<double> cold = two;
    cold.warm = false;
    EXPECT_EQ(distance(l2(cold), 5), distance(l2(cold), 1));
    L2<double> begun = cold;
    begun.start = exact;
    EXPECT_LT(distance(l2(begun), 1), 1e-10);
    // The second call has iterations enough.
    L2<double> growing{.op = a, .b = b, .iterations = 50};
    growing.iterations_of_call = [](int call) { return call == 0 ? 1 : 50; };
    EXPECT_GT(distance(l2(growing), 1), 1e-3);
    EXPECT_LT(distance(l2(growing), 2), 1e-10);
    // A NaN comes out, and is gone the next time.
    const AnyProximal<double> f = l2(two);
    auto bad = x, z = x;
    if (world.rank() == 1) bad[0] = std::nan("");
    f.prox(bad, 3, z);
    EXPECT_TRUE(std::isnan(z[0]));
    EXPECT_LT(distance(f, 100), 1e-6);
  });
}

// Blocks U diag(s) V^H of known singular values.
TYPED_TEST(ProximalOf, NuclearThresholdsSingularValues) {
  using T = TypeParam;
  const auto block = [](double s0, double s1, double s2) {
    Dense<T> diagonal(4, 3);
    diagonal.at(0, 0) = T(static_cast<Real<T>>(s0));
    diagonal.at(1, 1) = T(static_cast<Real<T>>(s1));
    diagonal.at(2, 2) = T(static_cast<Real<T>>(s2));
    return (reflection<T>(4) * diagonal * reflection<T>(3)).elements;
  };
  const auto all = [&](double less) {
    std::vector<T> elements;
    for (int i = 0; i < 5; ++i) {
      const auto one = block(std::max(0.0, 3 + i - less), std::max(0.0, 1 - less), std::max(0.0, 0.2 - less));
      elements.insert(elements.end(), one.begin(), one.end());
    }
    return elements;
  };
  on_ranks(
      [&](comm::Communicator& world) {
        const int ranks = world.size();
        std::vector<Index> uneven(static_cast<std::size_t>(ranks), 0), row = uneven, other = uneven;
        uneven.front() = 2;
        uneven.back() += 3;
        row.back() = 60;
        other.front() = 3;
        for (const Layout& layout :
             {Layout::split({5, 4, 3}, ranks), Layout::split_unevenly({5, 4, 3}, uneven),
              Layout::replicated({5, 4, 3}, ranks), Layout::split_unevenly({60}, row),
              Layout::split_unevenly({5, 4, 3}, other, 2)}) {
          const auto x = array_of(world, layout, all(0));
          auto z = poisoned<T>(world, layout);
          nuclear<T>(4, 3, 0.8).prox(x, 0.5, z);
          expect_close(z.to_full(), all(0.4), layout.describe(), comparing<T>);
          EXPECT_NEAR(nuclear<T>(4, 3, 0.8).value(x), 0.8 * (25 + 5 * 1.2), 1e-3) << layout.describe();
        }
        auto x = array_of(world, Layout::split({5, 4, 3}, ranks), all(0));
        if (x.local().size() > 0) x[0] = T(static_cast<Real<T>>(std::nan("")));
        nuclear<T>(4, 3).prox(x, 0.5, x);
        EXPECT_TRUE(x.local().empty() || x[1] != x[1]);
        EXPECT_TRUE(std::isnan(nuclear<T>(4, 3).value(x)));
      },
      {1, 2, 3, 4});
}

TEST_F(Proximal, BoxIsInfiniteOutside) {
  comm::run_threads(3, [](comm::Communicator& world) {
    auto x = array_of(world, Layout::split({7}, 3), numbers<double>(7, 1));
    const auto f = box<double>(-1, 1.5);
    EXPECT_EQ(f.value(x), infinity);
    f.prox(x, 1, x);
    EXPECT_EQ(f.value(x), 0);
    for (const double v : x.to_full()) EXPECT_TRUE(v >= -1 && v <= 1.5);
    if (world.rank() == 2) x[0] = std::nan("");
    EXPECT_EQ(f.value(x), infinity);
    f.prox(x, 1, x);
    EXPECT_EQ(world.all_reduce(std::isnan(x[0]) ? 1 : 0, comm::Reduction::sum), 1);
  });
}

TEST_F(Proximal, RefusesWhatMakesNoSense) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({6}, 2), other = Layout::split({5}, 2);
    DistributedArray<double> x(world, layout), y(world, other);
    auto z = x;
    expect_contains(error_of([] { (void)l1<double>(-1); }), {"l1", "sigma", "-1"});
    expect_contains(error_of([] { (void)box<double>(2, 1); }), {"box", "2", "1"});
    expect_contains(error_of([] { (void)nuclear<double>(0, 3); }), {"nuclear", "0×3"});
    expect_contains(error_of([&] { l1<double>().prox(x, 0, z); }), {"tau is 0"});
    expect_contains(error_of([&] { l1<double>().prox(x, std::nan(""), z); }), {"tau is nan"});
    expect_contains(error_of([&] { l1<double>().prox(x, 1, y); }), {"6", "5"});
    expect_contains(error_of([&] { l1<double>().prox_dual(x, 1, x); }), {"one array"});
    expect_contains(error_of([&] { (void)l1<double>().gradient(x, z); }, ErrorCode::unsupported),
                    {"gradient"});
    expect_contains(error_of([&] { l21<double>().prox(x, 1, z); }), {"l21", "stack"});
    DistributedArray<double> unequal(world, Layout::stack({layout, other}));
    expect_contains(error_of([&] { (void)l21<double>().value(unequal); }), {"l21", "6", "5"});
    expect_contains(error_of([&] { (void)separable_sum<double>({l1<double>()}).value(unequal); }),
                    {"separable_sum", "1 functions"});
    expect_contains(error_of([&] { (void)l2<double>({.b = y}).value(x); }), {"l2", "6", "5"});
    expect_contains(
        error_of([&] { (void)l2<double>({.op = linop::identity<double>(world, layout), .b = y}); }),
        {"l2", "6", "5"});
    // A block over two ranks, in either form; on one rank these layouts are fine.
    DistributedArray<double> blocks(world, Layout::split({4, 2, 3}, 2, 1));
    expect_contains(error_of([&] { (void)nuclear<double>(2, 3).value(blocks); }),
                    {"4×2×3", "2×3", "multiples of 6"});
    DistributedArray<double> row(world, Layout::split_unevenly({12}, {5, 7}));
    expect_contains(error_of([&] { (void)nuclear<double>(2, 3).value(row); }), {"12", "2×3"});
  });
}

// A sum has a gradient where all its functions have.
TEST_F(Proximal, SumsHaveGradients) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout half = Layout::split({3}, 2), layout = Layout::stack({half, Layout::replicated({2}, 2)});
    EXPECT_FALSE(separable_sum<double>({l2<double>({}), l1<double>()}).has_gradient());
    const auto f = separable_sum<double>({l2<double>({.sigma = 2}), l2<double>({.sigma = 3})});
    const auto x = array_of(world, layout, std::vector<double>{1, 2, 3, 4, 5});
    auto g = poisoned<double>(world, layout);
    (void)f.gradient(x, g);
    EXPECT_EQ(g.to_full(), (std::vector<double>{2, 4, 6, 12, 15}));
    EXPECT_EQ(f.value(x), 14 + 1.5 * 41);
  });
}

}  // namespace
}  // namespace shoal::solver
