// SPDX-License-Identifier: Apache-2.0
// What all solvers share: stop reasons, callbacks, the loop by hand, inputs left alone, NaNs, scales, bits,
// reductions.
#include <gtest/gtest.h>

#include <cstring>

#include "shoal/comm/transport.h"
#include "shoal/solver/cgls.h"
#include "shoal/solver/ista.h"
#include "shoal/solver/lsqr.h"
#include "solver/support.h"

namespace shoal::solver {
namespace {

using namespace testing;

struct Common {
  int max_iterations = 100;
  double tolerance = 1e-10;
  Callback<double> callback{};
  int show_every = 0;
};

struct Method {
  const char* name;
  std::function<std::unique_ptr<Solver<double>>(const AnyOperator<double>&, const Common&)> make;
  std::function<Result<double>(const AnyOperator<double>&, const DistributedArray<double>&,
                               const DistributedArray<double>&, const Common&)>
      function;
};

// Fills the options that all methods have.
template <class Options>
Options with(const Common& common, Options options) {
  options.max_iterations = common.max_iterations;
  options.tolerance = common.tolerance;
  options.callback = common.callback;
  options.show_every = common.show_every;
  return options;
}

#define SHOAL_METHOD(name, function, options)                                                            \
  {                                                                                                      \
    name, [](const auto& a, const Common& common) { return make_##function(a, with(common, options)); }, \
        [](const auto& a, const auto& b, const auto& x0, const Common& common) {                         \
          return function(a, b, x0, with(common, options));                                              \
        }                                                                                                \
  }
const std::vector<Method>& methods() {
  static const std::vector<Method> all{
      SHOAL_METHOD("cg", cg, CgOptions<double>{}),
      SHOAL_METHOD("pipelined cg", cg, CgOptions<double>{.variant = Variant::pipelined}),
      SHOAL_METHOD("cgls", cgls, CglsOptions<double>{}),
      SHOAL_METHOD("damped cgls", cgls, CglsOptions<double>{.damping = 0.1}),
      SHOAL_METHOD("pipelined cgls", cgls, CglsOptions<double>{.variant = Variant::pipelined}),
      SHOAL_METHOD("lsqr", lsqr, LsqrOptions<double>{}),
      SHOAL_METHOD("ista", ista, IstaOptions<double>{.epsilon = 0.01}),
      SHOAL_METHOD("fista", fista, IstaOptions<double>{.epsilon = 0.01})};
  return all;
}
#undef SHOAL_METHOD

Dense<double> definite(Index n, double scale = 1) {
  std::vector<double> eigenvalues;
  for (Index i = 0; i < n; ++i) eigenvalues.push_back(scale * (1 + 0.37 * static_cast<double>(i)));
  return with_eigenvalues(eigenvalues);
}

// body(method, A, b, x0) on these ranks, for a definite matrix.
using Body = std::function<void(const Method&, const AnyOperator<double>&, const DistributedArray<double>&,
                                const DistributedArray<double>&)>;
void for_each_method(const Body& body, const std::vector<int>& ranks = {1, 2, 3}) {
  const Index n = 12;
  const Dense<double> matrix = definite(n);
  for (const Method& method : methods()) {
    SCOPED_TRACE(method.name);
    on_ranks(
        [&](comm::Communicator& world) {
          const Layout layout = Layout::split({n}, world.size());
          body(method, gathered(world, matrix, layout, layout),
               array_of(world, layout, numbers<double>(n, 1)),
               array_of(world, layout, numbers<double>(n, 4)));
        },
        ranks);
  }
}

TEST(Solver, StopsAtTheLimit) {
  for_each_method([](const Method& method, const auto& a, const auto& b, const auto& x0) {
    for (const int limit : {0, 1, 3}) {
      const auto result = method.function(a, b, x0, {.max_iterations = limit, .tolerance = 0});
      EXPECT_EQ(result.stop, Stop::iteration_limit) << method.name;
      EXPECT_EQ(result.iterations, limit);
      EXPECT_EQ(result.history.size(), static_cast<std::size_t>(limit) + 1);
      if (limit == 0) {
        EXPECT_EQ(result.x.to_full(), x0.to_full());
      }
    }
  });
}

TEST(Solver, CallbacksSeeEachIterationAndMayStop) {
  for_each_method([](const Method& method, const auto& a, const auto& b, const auto& x0) {
    std::vector<int> numbers_seen;
    std::vector<std::vector<double>> iterates;
    const Callback<double> callback = [&](const Iteration<double>& iteration) {
      numbers_seen.push_back(iteration.number);
      iterates.push_back(iteration.x.to_full());
      return iteration.number == 4 ? Next::stop : Next::go_on;
    };
    const auto result = method.function(a, b, x0, {.tolerance = 0, .callback = callback});
    EXPECT_EQ(result.stop, Stop::callback) << method.name;
    EXPECT_EQ(result.iterations, 4);
    EXPECT_EQ(numbers_seen, (std::vector<int>{1, 2, 3, 4}));
    EXPECT_EQ(iterates.back(), result.x.to_full());
    const auto shorter = method.function(a, b, x0, {.max_iterations = 2, .tolerance = 0});
    EXPECT_EQ(iterates[1], shorter.x.to_full()) << "the x that a callback sees";
    EXPECT_THROW((void)method.function(
                     a, b, x0, {.callback = [](const auto&) -> Next { throw std::runtime_error("mine"); }}),
                 std::runtime_error);
  });
}

TEST(Solver, TheLoopHasTheBitsOfTheFunction) {
  for_each_method([](const Method& method, const auto& a, const auto& b, const auto& x0) {
    const auto result = method.function(a, b, x0, {.tolerance = 1e-8});
    auto solver = method.make(a, {.tolerance = 1e-8});
    // Another problem before leaves nothing behind, not even NaNs.
    DistributedArray<double> other = b;
    other.fill(std::nan(""));
    solver->setup(other);
    EXPECT_FALSE(solver->step());
    EXPECT_EQ(solver->finish().stop, Stop::non_finite);
    solver->setup(b, x0);
    int steps = 0;
    while (solver->step()) {
      ++steps;
      EXPECT_EQ(solver->result().iterations, steps);
    }
    const Result<double> by_hand = std::move(*solver).finish();
    EXPECT_EQ(by_hand.stop, result.stop) << method.name;
    EXPECT_EQ(by_hand.iterations, result.iterations);
    EXPECT_EQ(by_hand.x.to_full(), result.x.to_full());
    EXPECT_EQ(by_hand.history, result.history);
    EXPECT_EQ(by_hand.residual_norm, result.residual_norm);
  });
}

TEST(Solver, LeavesItsInputsAlone) {
  for_each_method([](const Method& method, const auto& a, const auto& b, const auto& x0) {
    const auto b_before = b.to_full(), x0_before = x0.to_full();
    (void)method.function(a, b, x0, {});
    const auto same_bits = [](const std::vector<double>& one, const std::vector<double>& other) {
      return std::memcmp(one.data(), other.data(), one.size() * sizeof(double)) == 0;
    };
    EXPECT_TRUE(same_bits(b.to_full(), b_before)) << method.name;
    EXPECT_TRUE(same_bits(x0.to_full(), x0_before)) << method.name;
  });
}

TEST(Solver, StopsAtTheFirstNumberThatIsNotFinite) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
    for_each_method(
        [&](const Method& method, const auto& a, const auto& b, const auto& x0) {
          std::vector<double> data = b.to_full();
          data[7] = bad;  // on rank 1 of 3: 4, 4 and 4 elements
          const auto spoilt = array_of(b.communicator(), b.layout(), data);
          const auto result = method.function(a, spoilt, x0, {});
          EXPECT_EQ(result.stop, Stop::non_finite) << method.name;
          EXPECT_LT(result.iterations, 2);
          EXPECT_EQ(result.non_finite_rank, 1);
          const auto start = method.function(a, b, spoilt, {});
          EXPECT_EQ(start.stop, Stop::non_finite) << method.name;
        },
        {3});
}

// An operator whose output has a NaN on the last rank from a certain application on.
struct FailsLater {
  using domain_type = double;
  using range_type = double;
  const comm::Communicator& communicator() const { return a.communicator(); }
  const Layout& domain() const { return a.domain(); }
  const Layout& range() const { return a.range(); }
  void apply(const DistributedArray<double>& x, DistributedArray<double>& y) const {
    a.apply(x, y);
    if (++*count > 5 && y.rank() + 1 == y.communicator().size()) y[0] = std::nan("");
  }
  void apply_adjoint(const DistributedArray<double>& y, DistributedArray<double>& x) const {
    a.apply_adjoint(y, x);
  }
  AnyOperator<double> a;
  std::shared_ptr<int> count = std::make_shared<int>(0);
};

TEST(Solver, SaysWhereAnOperatorFails) {
  for_each_method(
      [](const Method& method, const auto& a, const auto& b, const auto& x0) {
        if (std::string(method.name).find("ista") != std::string::npos) return;  // applies it for its step
        const AnyOperator<double> failing = FailsLater{a};
        const auto result = method.function(failing, b, x0, {.tolerance = 0});
        EXPECT_EQ(result.stop, Stop::non_finite) << method.name;
        EXPECT_EQ(result.non_finite_rank, b.communicator().size() - 1) << method.name;
        EXPECT_GE(result.iterations, 2);
        EXPECT_LE(result.iterations, 5);
        if (method.name == std::string("cg") || method.name == std::string("cgls")) {
          EXPECT_TRUE(std::isfinite(norm(result.x))) << "x is the last that was good";
        }
      },
      {1, 3});
}

// A and b multiplied by a power of ten: the same number of steps.
TEST(Solver, ScalesDoNotMatter) {
  const Index n = 12;
  for (const Method& method : methods()) {
    if (std::string(method.name).find("ista") != std::string::npos) continue;  // epsilon has a scale
    const bool damped = std::string(method.name).find("damped") != std::string::npos;
    comm::run_threads(2, [&](comm::Communicator& world) {
      const Layout layout = Layout::split({n}, 2);
      const auto steps = [&](double a_scale, double b_scale) {
        const auto a = gathered(world, definite(n, a_scale), layout, layout);
        const auto b = array_of(world, layout, scaled(numbers<double>(n, 1), b_scale));
        auto solver = damped ? make_cgls(a, CglsOptions<double>{.tolerance = 1e-10, .damping = 0.1 * a_scale})
                             : method.make(a, {.tolerance = 1e-10});
        solver->setup(b);
        while (solver->step()) {
        }
        EXPECT_EQ(solver->result().stop, Stop::converged) << method.name << " " << a_scale << " " << b_scale;
        std::vector<double> x = solver->result().x.to_full();
        return std::pair(solver->result().iterations, scaled(x, a_scale / b_scale));
      };
      const auto [plain, x] = steps(1, 1);
      EXPECT_GT(plain, 5);
      for (const auto& [a_scale, b_scale] :
           {std::pair(1e-60, 1e-60), std::pair(1e60, 1e60), std::pair(1.0, 1e-200), std::pair(1.0, 1e200),
            std::pair(1e-60, 1e60)}) {
        const auto [iterations, x_scaled] = steps(a_scale, b_scale);
        EXPECT_EQ(iterations, plain) << method.name << " " << a_scale << " " << b_scale;
        expect_close(x_scaled, x, method.name, 1e-8);
      }
    });
  }
}

TEST(Solver, ScalesOfFloatsDoNotMatter) {
  comm::run_threads(2, [&](comm::Communicator& world) {
    const Layout layout = Layout::split({8}, 2);
    const auto steps = [&](double scale) {
      const auto a =
          gathered(world, scaled(with_eigenvalues<float>({1, 2, 3, 4, 5, 6, 7, 8}), scale), layout, layout);
      const auto b = array_of(world, layout, scaled(numbers<float>(8, 1), scale));
      const auto result = cgls(a, b, {.tolerance = 1e-5});
      EXPECT_EQ(result.stop, Stop::converged) << scale;
      return result.iterations;
    };
    const int plain = steps(1);
    EXPECT_EQ(steps(1e-12), plain);
    EXPECT_EQ(steps(1e12), plain);
  });
}

TEST(Solver, EveryNumberOfRanksGivesTheSameResult) {
  for (const Method& method : methods()) {
    std::vector<double> serial;
    std::vector<double> again;
    for (int repeat = 0; repeat < 2; ++repeat)
      on_ranks([&](comm::Communicator& world) {
        const Layout layout = Layout::split({12}, world.size());
        const auto a = gathered(world, definite(12), layout, layout);
        const auto result = method.function(a, array_of(world, layout, numbers<double>(12, 1)),
                                            DistributedArray<double>(world, layout), {.max_iterations = 6});
        const std::vector<double> x = result.x.to_full();
        if (world.size() == 1) serial = x;
        expect_close(x, serial, method.name, 1e-11);
        if (world.size() == 3 && world.rank() == 0) {
          if (repeat == 0) again = x;
          EXPECT_EQ(x, again) << method.name << ": every run has the same bits";
        }
      });
  }
}

TEST(Solver, BreaksDownWhereItMust) {
  comm::run_threads(2, [](comm::Communicator& world) {
    const Layout layout = Layout::split({2}, 2);
    // p^H A p = 0 at the first step.
    Dense<double> indefinite(2, 2);
    indefinite.at(0, 0) = 1;
    indefinite.at(1, 1) = -1;
    const auto a = gathered(world, indefinite, layout, layout);
    const auto b = array_of(world, layout, std::vector<double>{1, 1});
    for (const Variant variant : {Variant::standard, Variant::pipelined}) {
      EXPECT_EQ(cg(a, b, {.variant = variant}).stop, Stop::breakdown);
      // The sign of p^H A p changes.
      const auto c = array_of(world, layout, std::vector<double>{3, 1});
      EXPECT_EQ(cg(a, c, {.variant = variant}).stop, Stop::breakdown);
    }
  });
}

// A mask's groups solve problems of their own by one call, and stop on their own.
TEST(Solver, SumsRunWhereTheMaskOfTheDataSays) {
  comm::run_threads(4, [](comm::Communicator& world) {
    const Layout layout = Layout::split({8}, 4);
    Dense<double> diagonal(2, 2);
    diagonal.at(0, 0) = world.rank() < 2 ? 9 : 1 + world.rank();
    diagonal.at(1, 1) = 9;
    const auto a = linop::block_diagonal<double>(world, {diagonal});
    auto b = array_of(world, layout, numbers<double>(8, 1));
    const auto whole = cgls(a, b, {.tolerance = 1e-12});
    EXPECT_EQ(whole.iterations, 3);
    b.set_mask(std::vector<int>{0, 0, 1, 1});
    for (const Variant variant : {Variant::standard, Variant::pipelined}) {
      const auto parts = cgls(a, b, {.tolerance = 1e-12, .variant = variant});
      EXPECT_EQ(parts.stop, Stop::converged);
      EXPECT_EQ(parts.iterations, world.rank() < 2 ? 1 : 3) << "as many as there are eigenvalues";
      expect_close(parts.x.to_full(), whole.x.to_full(), "the same solution", 1e-9);
    }
    if (world.rank() == 3) b[1] = std::nan("");
    const auto spoilt = cgls(a, b, {.tolerance = 1e-12});
    EXPECT_EQ(spoilt.stop, world.rank() < 2 ? Stop::converged : Stop::non_finite);
    EXPECT_EQ(spoilt.non_finite_rank, world.rank() < 2 ? -1 : 3);
  });
}

TEST(Solver, ShowsProgressOnRankZero) {
  ::testing::internal::CaptureStderr();
  for_each_method(
      [](const Method& method, const auto& a, const auto& b, const auto& x0) {
        (void)method.function(a, b, x0, {.max_iterations = 4, .tolerance = 0, .show_every = 2});
      },
      {2});
  const std::string text = ::testing::internal::GetCapturedStderr();
  for (const char* part : {"cg 2/4  residual ", "pipelined cgls 4/4  residual ", "fista 2/4", " s left\n",
                           "lsqr 4 iterations  residual ", "iteration limit\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), 3 * methods().size());
}

// One rank that counts its reductions.
class Counting final : public comm::Transport {
 public:
  struct Counts {
    int reductions = 0, started = 0, others = 0;
  };
  explicit Counting(Counts& counts) : counts_(counts) { world_.host = {"here"}; }
  std::string_view name() const override { return "counting"; }
  std::string library() const override { return "a test"; }
  const comm::World& world() const override { return world_; }
  void submit(const comm::Group&, const comm::Operation& operation) override { carry_out(operation); }
  std::unique_ptr<comm::Pending> start(const comm::Group&, const comm::Operation& operation) override {
    ++counts_.started;
    carry_out(operation);
    struct Done final : comm::Pending {
      bool test() override { return true; }
      void wait() override {}
    };
    return std::make_unique<Done>();
  }
  std::unique_ptr<comm::SymmetricMemory> allocate(const comm::Group&, std::size_t) override {
    return nullptr;
  }
  void open(const comm::Group&) override {}
  void close(const comm::Group&) noexcept override {}
  void progress() override {}
  void finalize() override {}
  void abort(int) noexcept override {}

 private:
  void carry_out(const comm::Operation& operation) {
    ++(operation.pattern == comm::Pattern::all_reduce ? counts_.reductions : counts_.others);
    if (operation.send.data != operation.recv.data && operation.send.data != nullptr)
      std::memcpy(operation.recv.data, operation.send.data, operation.send.bytes());
  }
  Counts& counts_;
  comm::World world_;
};

TEST(Solver, ReductionsPerIterationAreThoseOfTheHeaders) {
  const std::vector<std::pair<std::string, int>> expected{
      {"cg", 2},   {"pipelined cg", 1}, {"cgls", 2}, {"damped cgls", 2}, {"pipelined cgls", 1},
      {"lsqr", 2}, {"ista", 1},         {"fista", 1}};
  for (const Method& method : methods()) {
    Counting::Counts counts;
    comm::Communicator world = comm::Communicator::make_world(std::make_unique<Counting>(counts));
    const Layout layout = Layout::split({6}, 1);
    const auto a = linop::block_diagonal<double>(world, {definite(6)});
    auto solver = method.make(a, {.tolerance = 0});
    solver->setup(array_of(world, layout, numbers<double>(6, 1)));
    solver->step();
    counts = {};
    solver->step();
    solver->step();
    const auto found = std::find_if(expected.begin(), expected.end(),
                                    [&](const auto& pair) { return pair.first == method.name; });
    EXPECT_EQ(counts.reductions, 2 * found->second) << method.name;
    EXPECT_EQ(counts.others, 0) << method.name;
    const bool pipelined = std::string(method.name).find("pipelined") != std::string::npos;
    EXPECT_EQ(counts.started, pipelined ? 2 : 0) << method.name;
  }
}

}  // namespace
}  // namespace shoal::solver
