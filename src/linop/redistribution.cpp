// SPDX-License-Identifier: Apache-2.0
// Moving arrays from one layout to another, as an operator.
#include "shoal/array/redistribution.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "shoal/base/error.h"
#include "shoal/linop/linear_operator.h"

namespace shoal::linop {
namespace {

// Each element is in one place on either side, or in one and in replicas, which dot products count once. So
// the way back is the adjoint.
template <class T>
class Move {
 public:
  using domain_type = T;
  using range_type = T;

  Move(const comm::Communicator& communicator, const Layout& from, const Layout& to)
      : communicator_(communicator), from_(from), to_(to) {
    if (from.shape() != to.shape()) return;
    there_.emplace(communicator, from, to);
    back_.emplace(communicator, to, from);
  }
  const comm::Communicator& communicator() const { return communicator_; }
  const Layout& domain() const { return from_; }
  const Layout& range() const { return to_; }
  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const { run(there_, x, y); }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const { run(back_, y, x); }

 private:
  using Plan = std::optional<array::Redistribution<T>>;
  static void run(Plan& plan, const DistributedArray<T>& x, DistributedArray<T>& y) {
    if (plan) return plan->run(x, y);
    const DistributedArray<T> moved = reshape(x, y.layout());
    std::ranges::copy(moved.local(), y.local().begin());
  }

  comm::Communicator communicator_;
  Layout from_, to_;
  mutable Plan there_, back_;
};

}  // namespace

template <class T>
AnyOperator<T> redistribution(const comm::Communicator& communicator, const Layout& from, const Layout& to) {
  if (from.size() != to.size())
    fail(ErrorCode::invalid_argument,
         fmt::format("redistribution from {} to {}: {} elements and {}; both need as many", from.describe(),
                     to.describe(), from.size(), to.size()));
  return Move<T>(communicator, from, to);
}

#define SHOAL_INSTANTIATE(T) \
  template AnyOperator<T> redistribution(const comm::Communicator&, const Layout&, const Layout&);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
