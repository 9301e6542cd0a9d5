// SPDX-License-Identifier: Apache-2.0
// After the first application operators allocate nothing: solvers count on it.
#include "linop/count_allocations.h"
#include "linop/operator_checks.h"
#include "shoal/linop/derivatives.h"
#include "shoal/linop/stacks.h"

namespace shoal::linop::checks {
namespace {

using Complex = std::complex<double>;

void expect_none(const AnyOperator<Complex>& a, const char* what) {
  DistributedArray<Complex> x(a.communicator(), a.domain()), y(a.communicator(), a.range());
  const auto apply = [&] {
    a.apply(x, y);
    a.apply_adjoint(y, x);
  };
  apply();
  const int before = allocations();
  apply();
  EXPECT_EQ(allocations(), before) << what;
}

TEST(Allocations, NoneAfterTheFirstApplication) {
  on_ranks(
      [](comm::Communicator& communicator) {
        const Layout layout = Layout::split({40, 60, 80}, 1);
        const AnyOperator<Complex> d = first_derivative<Complex>(communicator, layout, 0);
        const AnyOperator<Complex> l = laplacian<Complex>(communicator, layout, {.axes = {0, 1, 2}});
        const AnyOperator<Complex> g = gradient<Complex>(communicator, layout);
        expect_none(d, "derivative");
        expect_none(l, "Laplacian");
        expect_none(g, "gradient");
        expect_none(Complex(0, 2) * d + power(l, 3) - transpose(d) * l, "algebra");
        expect_none(stacked_vertical<Complex>({d, l}), "stack");
        expect_none(adjoint(g) * g, "divergence of the gradient");
      },
      {1});
}

}  // namespace
}  // namespace shoal::linop::checks
