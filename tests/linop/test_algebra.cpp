// SPDX-License-Identifier: Apache-2.0
// Sums, products, adjoints and the rest, held against the same algebra of dense matrices.
#include "linop/operator_checks.h"
#include "shoal/linop/stacks.h"

namespace shoal::linop::checks {
namespace {

template <class T>
class Algebra : public testing::Test {};
TYPED_TEST_SUITE(Algebra, ElementTypes);

// Two blocks a rank, of different sizes on each; square ones of 1 to 2.
template <class T>
AnyOperator<T> square_operator(const comm::Communicator& communicator, int seed) {
  const int rank = communicator.rank();
  return block_diagonal<T>(communicator, {Dense<T>::numbered(1 + rank % 2, 1 + rank % 2, seed + rank),
                                          Dense<T>::numbered(1, 1, seed)});
}

// From one layout to another: heights differ from widths.
template <class T>
AnyOperator<T> wide_operator(const comm::Communicator& communicator, int seed) {
  const int rank = communicator.rank();
  return block_diagonal<T>(communicator, {Dense<T>::numbered(1 + rank % 2, 3, seed + rank)});
}

TYPED_TEST(Algebra, AgreesWithDenseMatrices) {
  using T = TypeParam;
  on_ranks([](comm::Communicator& communicator) {
    const AnyOperator<T> a = square_operator<T>(communicator, 1), b = square_operator<T>(communicator, 2);
    const AnyOperator<T> w = wide_operator<T>(communicator, 3), v = wide_operator<T>(communicator, 4);
    const Dense<T> da = dense_of(a), db = dense_of(b), dw = dense_of(w), dv = dense_of(v);
    const T factor = make<T>(1.5, -2);

    expect_matrix(adjoint(w), dw.conjugate_transpose(), "adjoint");
    expect_matrix(transpose(w), dw.transpose(), "transpose");
    expect_matrix(conj(w), dw.conjugate(), "conj");
    expect_matrix(w + v, sum(dw, T(1), dv), "sum");
    expect_matrix(w - v, sum(dw, T(-1), dv), "difference");
    expect_matrix(-w, sum(Dense<T>(dw.height, dw.width), T(-1), dw), "negation");
    expect_matrix(factor * w, sum(Dense<T>(dw.height, dw.width), factor, dw), "scaling");
    expect_matrix(adjoint(v) * w, dv.conjugate_transpose() * dw, "product");
    expect_matrix(a * b * a - factor * (b + a), sum(da * db * da, T(-factor), sum(db, T(1), da)), "mixture");
    Dense<T> expected(da.height, da.width);
    for (Index i = 0; i < expected.height; ++i) expected.at(i, i) = T(1);
    for (int n = 0; n <= 4; ++n) {
      expect_matrix(power(a, n), expected, "power " + std::to_string(n));
      expected = expected * da;
    }
  });
}

TYPED_TEST(Algebra, ReshapedNamesTheSameElements) {
  using T = TypeParam;
  on_ranks(
      [](comm::Communicator& communicator) {
        const AnyOperator<T> a =
            block_diagonal<T>(communicator, std::vector<AnyLocalOperator<T>>(2, Dense<T>::numbered(3, 4, 1)));
        const int ranks = communicator.size();
        const Layout domain = Layout::split({2 * ranks, 2, 2}, ranks),
                     range = Layout::split({2 * ranks, 3}, ranks);
        const AnyOperator<T> b = reshaped(a, domain, range);
        EXPECT_TRUE(b.domain() == domain && b.range() == range);
        expect_matrix(b, dense_of(a), "reshaped");
        const std::string text = error_of([&] { reshaped(a, Layout::split({ranks, 3, 2}, ranks), range); });
        expect_contains(text, {"3×2", "as many elements on each rank"});
      },
      {1, 2, 3});
}

// x -> its real part; the adjoint embeds. Linear over the reals alone.
template <class R>
struct RealPart {
  using domain_type = std::complex<R>;
  using range_type = R;
  const comm::Communicator& communicator() const { return group; }
  const Layout& domain() const { return layout; }
  const Layout& range() const { return layout; }
  void apply(const DistributedArray<std::complex<R>>& x, DistributedArray<R>& y) const {
    for (std::size_t i = 0; i < x.local().size(); ++i) y[i] = x[i].real();
  }
  void apply_adjoint(const DistributedArray<R>& y, DistributedArray<std::complex<R>>& x) const {
    for (std::size_t i = 0; i < y.local().size(); ++i) x[i] = y[i];
  }
  comm::Communicator group;
  Layout layout;
};

template <class R>
class MixedAlgebra : public testing::Test {};
TYPED_TEST_SUITE(MixedAlgebra, RealTypes);

TYPED_TEST(MixedAlgebra, BetweenRealAndComplex) {
  using R = TypeParam;
  using C = std::complex<R>;
  on_ranks([](comm::Communicator& communicator) {
    const Layout layout = Layout::split({7}, communicator.size());
    const AnyOperator<C, R> to_real = RealPart<R>{communicator, layout};
    const AnyOperator<R, C> embed = adjoint(to_real);
    const AnyOperator<C> turn = C(0.6f, -0.8f) * identity<C>(communicator, layout);
    expect_adjoint(to_real, "real part");
    expect_adjoint(embed, "embedding");
    expect_adjoint(C(2, 3) * embed, "scaled embedding");
    expect_adjoint(R(2) * to_real + to_real, "scaled real part");
    expect_adjoint(transpose(to_real * turn), "transpose");
    expect_adjoint(conj(turn * embed), "conj");
    expect_adjoint(to_real * (turn * embed), "real to real over complex");

    // Re((2 + 3i) x) = 2 x for real x, and conj turns the factor.
    const AnyOperator<R> twice = to_real * (C(2, 3) * embed);
    const AnyOperator<C> crossed = C(0, 1) * (embed * to_real) * turn;
    expect_adjoint(twice, "2 x");
    const DistributedArray<R> x = random_array<R>(communicator, layout, 1);
    std::vector<R> expected = x.to_full();
    for (R& value : expected) value *= R(2);
    expect_close(twice(x).to_full(), expected, "2 x");
    // From complex to complex, but linear over the reals alone: dot_test says so, or is told.
    EXPECT_FALSE(dot_test(crossed).passed);
    EXPECT_TRUE(dot_test(crossed, 1, 0, /*linear_over_reals=*/true).passed);
  });
}

TEST(Operators, GiveTheirResultsTheMask) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const AnyOperator<double> a = wide_operator<double>(communicator, 1);
        DistributedArray<double> x(communicator, a.domain());
        x.set_mask(std::vector<int>{0, 1, 0, 1});
        const DistributedArray<double> y = a(x);
        EXPECT_EQ(&y.reduction_communicator(), &x.reduction_communicator());
        EXPECT_EQ(&a.adjoint_of(y).reduction_communicator(), &x.reduction_communicator());
      },
      {4});
}

TEST(AlgebraErrors, NameBothLayouts) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const int ranks = communicator.size();
        const AnyOperator<double> seven = identity<double>(communicator, Layout::split({7}, ranks));
        const AnyOperator<double> nine = identity<double>(communicator, Layout::split({9}, ranks));
        const AnyOperator<double> copies = identity<double>(communicator, Layout::replicated({7}, ranks));
        expect_contains(error_of([&] { seven + nine; }), {"7", "9", "sum"});
        expect_contains(error_of([&] { seven - copies; }), {"split", "replicated", "sum"});
        expect_contains(error_of([&] { seven* nine; }), {"7", "9", "product"});
        expect_contains(error_of([&] { power(seven, -1); }), {"-1"});
        DistributedArray<double> x(communicator, seven.domain()), other(communicator, nine.domain());
        expect_contains(error_of([&] { seven.apply(other, x); }), {"7", "9", "input"});
        expect_contains(error_of([&] { seven.apply(x, other); }), {"7", "9", "output"});
        if (!x.local().empty()) expect_contains(error_of([&] { seven.apply(x, x); }), {"share memory"});
      },
      {1, 2, 3});
}

TEST(AlgebraErrors, LocalLengths) {
  const AnyLocalOperator<double> a = Dense<double>::numbered(2, 3, 1);
  std::vector<double> two(2), three(3);
  a.apply(three, two);
  adjoint(a).apply(two, three);
  expect_contains(error_of([&] { a.apply(two, three); }), {"from 3 to 2", "2 and 3"});
  expect_contains(error_of([&] { adjoint(a).apply_adjoint(two, three); }), {"from 3 to 2", "2 and 3"});
}

}  // namespace
}  // namespace shoal::linop::checks
