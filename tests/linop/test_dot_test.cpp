// SPDX-License-Identifier: Apache-2.0
// The dot-test finds each kind of wrong adjoint that it is there for.
#include "linop/operator_checks.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/stacks.h"

namespace shoal::linop::checks {
namespace {

using Complex = std::complex<double>;

// An operator of which one direction is replaced.
template <class D, class R = D>
struct Forged {
  using domain_type = D;
  using range_type = R;
  const comm::Communicator& communicator() const { return a.communicator(); }
  const Layout& domain() const { return a.domain(); }
  const Layout& range() const { return a.range(); }
  void apply(const DistributedArray<D>& x, DistributedArray<R>& y) const {
    a.apply(x, y);
    if (after_apply) after_apply(x, y);
  }
  void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const {
    a.apply_adjoint(y, x);
    if (after_adjoint) after_adjoint(y, x);
  }
  AnyOperator<D, R> a;
  std::function<void(const DistributedArray<D>&, DistributedArray<R>&)> after_apply{};
  std::function<void(const DistributedArray<R>&, DistributedArray<D>&)> after_adjoint{};
};

// A with its transpose for an adjoint.
template <class T>
struct PlainTranspose : Forged<T> {
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    transpose(this->a).apply(y, x);
  }
};

Dense<Complex> example() {
  Dense<Complex> a(2, 2);
  a.elements = {{0, -1}, {1, 0}, {2, 0}, {0, 0}};
  return a;
}

TEST(DotTest, WorkedExample) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const AnyOperator<Complex> a = on_replicas<Complex>(communicator, example());
        const std::vector<Complex> x_full{1, Complex(0, 1)}, y_full{Complex(1, 1), 2};
        const auto x = DistributedArray<Complex>::from_full(communicator, a.domain(), x_full);
        const auto y = DistributedArray<Complex>::from_full(communicator, a.range(), y_full);
        EXPECT_EQ(dot(a(x), y), Complex(4, 0));
        EXPECT_EQ(dot(x, a.adjoint_of(y)), Complex(4, 0));
        EXPECT_EQ(dot(x, transpose(a)(y)), Complex(6, -2));
        EXPECT_TRUE(dot_test(a).passed);
        EXPECT_FALSE(dot_test(AnyOperator<Complex>(PlainTranspose<Complex>{{a}})).passed);
      },
      {1, 3});
}

TEST(DotTest, FindsAMissingConjugateOnOneRank) {
  on_ranks([](comm::Communicator& communicator) {
    const AnyOperator<Complex> right =
        block_diagonal<Complex>(communicator, {Dense<Complex>::numbered(3, 2, communicator.rank())});
    const Dense<Complex> matrix = Dense<Complex>::numbered(3, 2, communicator.rank());
    const bool last = communicator.rank() + 1 == communicator.size();
    const AnyOperator<Complex> wrong = Forged<Complex>{
        .a = right, .after_adjoint = [=](const DistributedArray<Complex>& y, DistributedArray<Complex>& x) {
          if (last) matrix.transpose().apply(y.local(), x.local());
        }};
    expect_adjoint(right, "right");
    EXPECT_FALSE(dot_test(wrong).passed);
  });
}

TEST(DotTest, FindsAnImaginaryPartAlone) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const AnyOperator<Complex> one =
            identity<Complex>(communicator, Layout::split({5}, communicator.size()));
        // <Ax, y> and <x, Ax> have equal real parts for x -> x + i x only if both are compared whole.
        const AnyOperator<Complex> wrong = Forged<Complex>{
            .a = one, .after_adjoint = [](const DistributedArray<Complex>&, DistributedArray<Complex>& x) {
              for (Complex& value : x.local()) value = {value.real(), -value.imag()};
            }};
        EXPECT_FALSE(dot_test(wrong).passed);
        EXPECT_TRUE(dot_test(one).passed);
      },
      {1, 2});
}

template <class T>
class DotTestOf : public testing::Test {};
TYPED_TEST_SUITE(DotTestOf, ElementTypes);

TYPED_TEST(DotTestOf, FindsOneWrongHaloCell) {
  using T = TypeParam;
  on_ranks(
      [](comm::Communicator& communicator) {
        const Layout layout = Layout::split({12, 5}, communicator.size());
        const AnyOperator<T> right = first_derivative<T>(communicator, layout, 0);
        // Rank 1 takes its own first element for the neighbour's last.
        const AnyOperator<T> wrong =
            Forged<T>{.a = right, .after_apply = [&](const DistributedArray<T>& x, DistributedArray<T>& y) {
                        if (x.rank() == 1) y[2] += x[2] * T(Real<T>(0.5));
                      }};
        expect_adjoint(right, "right");
        EXPECT_FALSE(dot_test(wrong).passed);
      },
      {2, 3, 4});
}

TYPED_TEST(DotTestOf, FindsElementsThatAreNotWritten) {
  using T = TypeParam;
  on_ranks(
      [](comm::Communicator& communicator) {
        const AnyOperator<T> zero = T(0) * identity<T>(communicator, Layout::split({6}, communicator.size()));
        const AnyOperator<T> lazy =
            Forged<T>{.a = zero, .after_apply = [](const DistributedArray<T>& x, DistributedArray<T>& y) {
                        if (x.rank() == 0) y[0] = T(std::numeric_limits<Real<T>>::quiet_NaN());
                      }};
        EXPECT_TRUE(dot_test(zero).passed);
        EXPECT_FALSE(dot_test(lazy).passed);
      },
      {1, 2});
}

TEST(DotTest, SameVerdictOnAllRanksWhereReplicasDiffer) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const AnyOperator<double> right = on_replicas<double>(communicator, Dense<double>::numbered(3, 4, 1));
        const AnyOperator<double> drifting = Forged<double>{
            .a = right, .after_adjoint = [](const DistributedArray<double>& y, DistributedArray<double>& x) {
              if (y.rank() == 1) x[0] += 1;
            }};
        EXPECT_FALSE(dot_test(drifting).passed);
      },
      {2, 3});
}

}  // namespace
}  // namespace shoal::linop::checks
