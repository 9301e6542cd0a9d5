// SPDX-License-Identifier: Apache-2.0
// The product of a matrix in rows with replicated matrices.
#include <fmt/format.h>

#include "linop/instantiate.h"
#include "linop/matrix_view.h"
#include "shoal/base/error.h"
#include "shoal/linop/matrix_product.h"

namespace shoal::linop {
namespace {

Layout rows_of(const Layout& a, Index columns) {
  const std::span<const Index> extents = a.extents(0);
  return Layout::split_unevenly({a.shape()[0], columns}, {extents.begin(), extents.end()});
}

template <class T>
class BlockProduct {
 public:
  using domain_type = T;
  using range_type = T;
  BlockProduct(DistributedArray<T> a, Index columns)
      : communicator_(a.communicator()),
        a_(std::move(a)),
        rows_(a_.local_shape()[0]),
        inner_(a_.local_shape()[1]),
        columns_(columns),
        domain_(Layout::replicated({inner_, columns}, a_.layout().ranks())),
        range_(rows_of(a_.layout(), columns)) {}

  const comm::Communicator& communicator() const { return communicator_; }
  const Layout& domain() const { return domain_; }
  const Layout& range() const { return range_; }

  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const {
    multiply(own(), x.local().data(), columns_, y.local().data());
  }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    multiply_adjoint(own(), y.local().data(), columns_, x.local().data());
    communicator_.all_reduce(x.local(), comm::Reduction::sum);
  }

 private:
  MatrixView<T> own() const { return {a_.local().data(), rows_, inner_, inner_}; }

  mutable comm::Communicator communicator_;
  DistributedArray<T> a_;
  Index rows_, inner_, columns_;
  Layout domain_, range_;
};

}  // namespace

template <class T>
AnyOperator<T> block_product(DistributedArray<T> a, Index columns) {
  const Layout layout = a.layout();
  if (layout.is_stack() || layout.axes() != 2 || layout.split_axis() != 0)
    fail(ErrorCode::invalid_argument,
         fmt::format("a block product needs a matrix that is split along axis 0, but was given {}",
                     layout.describe()));
  return BlockProduct<T>(std::move(a), columns);
}

#define SHOAL_INSTANTIATE(T) template AnyOperator<T> block_product(DistributedArray<T>, Index);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
