// SPDX-License-Identifier: Apache-2.0
#include "solver/proximal/scaled_system.h"

#include <algorithm>

#include "solver/run.h"
#include "solver/space.h"

namespace shoal::solver {
namespace {

template <class T>
class ScaledSystem {
 public:
  using domain_type = T;
  using range_type = T;
  using Array = DistributedArray<T>;

  ScaledSystem(const AnyOperator<T>& op, const std::optional<AnyOperator<T>>& a,
               std::shared_ptr<const double> scale)
      : op_(op),
        a_(a),
        scale_(std::move(scale)),
        range_(Layout::stack({op.range(), a ? a->range() : op.domain()})),
        domain_space_(op.domain(), op.communicator().rank()),
        data_space_(op.range(), op.communicator().rank()) {
    if (a) {
      require_equal(op.domain(), a->domain(), "the domains of two operators of a system");
      from_a_.emplace(op.communicator(), op.domain());
    }
  }

  const comm::Communicator& communicator() const { return op_.communicator(); }
  const Layout& domain() const { return op_.domain(); }
  const Layout& range() const { return range_; }

  void apply(const Array& x, Array& y) const {
    op_.apply(x, y.member(0));
    data_space_.axpby(0, y.member(0), *scale_, y.member(0));
    if (a_)
      a_->apply(x, y.member(1));
    else
      std::ranges::copy(x.local(), y.member(1).local().begin());
  }
  void apply_adjoint(const Array& y, Array& x) const {
    op_.apply_adjoint(y.member(0), x);
    if (a_) a_->apply_adjoint(y.member(1), *from_a_);
    domain_space_.axpby(1, a_ ? *from_a_ : y.member(1), *scale_, x);
  }

 private:
  AnyOperator<T> op_;
  std::optional<AnyOperator<T>> a_;
  std::shared_ptr<const double> scale_;
  Layout range_;
  Space<T> domain_space_, data_space_;
  mutable std::optional<Array> from_a_;
};

template <class T>
class ScaledNormal {
 public:
  using domain_type = T;
  using range_type = T;
  using Array = DistributedArray<T>;

  ScaledNormal(const AnyOperator<T>& op, std::shared_ptr<const double> scale)
      : op_(op),
        scale_(std::move(scale)),
        space_(op.domain(), op.communicator().rank()),
        image_(op.communicator(), op.range()) {}

  const comm::Communicator& communicator() const { return op_.communicator(); }
  const Layout& domain() const { return op_.domain(); }
  const Layout& range() const { return op_.domain(); }

  void apply(const Array& x, Array& y) const {
    op_.apply(x, image_);
    op_.apply_adjoint(image_, y);
    space_.axpby(1, x, *scale_, y);
  }
  void apply_adjoint(const Array& y, Array& x) const { apply(y, x); }

 private:
  AnyOperator<T> op_;
  std::shared_ptr<const double> scale_;
  Space<T> space_;
  mutable Array image_;
};

}  // namespace

template <class T>
AnyOperator<T> scaled_system(const AnyOperator<T>& op, const std::optional<AnyOperator<T>>& a,
                             std::shared_ptr<const double> scale) {
  return ScaledSystem<T>(op, a, std::move(scale));
}
template <class T>
AnyOperator<T> scaled_normal(const AnyOperator<T>& op, std::shared_ptr<const double> scale) {
  return ScaledNormal<T>(op, std::move(scale));
}

#define SHOAL_INSTANTIATE(T)                                                                         \
  template AnyOperator<T> scaled_system(const AnyOperator<T>&, const std::optional<AnyOperator<T>>&, \
                                        std::shared_ptr<const double>);                              \
  template AnyOperator<T> scaled_normal(const AnyOperator<T>&, std::shared_ptr<const double>);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
