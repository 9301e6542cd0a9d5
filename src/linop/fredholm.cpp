// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/fredholm.h"

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "linop/matrix_view.h"
#include "shoal/base/error.h"

namespace shoal::linop {
namespace {

// Layout of [slices, rows, nz] whose slices lie as those of the kernel.
Layout slices_of(const Layout& kernel, Index rows, Index nz, Slices slices) {
  const std::span<const Index> extents = kernel.extents(0);
  Shape shape{kernel.shape()[0], rows, nz};
  if (slices == Slices::replicated) return Layout::replicated(std::move(shape), kernel.ranks());
  return Layout::split_unevenly(std::move(shape), {extents.begin(), extents.end()});
}

template <class T>
class Fredholm {
 public:
  using domain_type = T;
  using range_type = T;
  Fredholm(DistributedArray<T> kernel, Index nz, Slices slices)
      : communicator_(kernel.communicator()),
        kernel_(std::move(kernel)),
        nx_(kernel_.layout().shape()[1]),
        ny_(kernel_.layout().shape()[2]),
        nz_(nz),
        first_(kernel_.layout().block(kernel_.rank()).begin[0]),
        slices_(kernel_.layout().block(kernel_.rank()).extent[0]),
        replicated_(slices == Slices::replicated),
        domain_(slices_of(kernel_.layout(), ny_, nz, slices)),
        range_(slices_of(kernel_.layout(), nx_, nz, slices)),
        counts_(static_cast<std::size_t>(kernel_.layout().ranks())) {}

  const comm::Communicator& communicator() const { return communicator_; }
  const Layout& domain() const { return domain_; }
  const Layout& range() const { return range_; }

  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const {
    run(x, ny_, y, nx_,
        [](const MatrixView<T>& g, const T* from, Index nz, T* to) { multiply(g, from, nz, to); });
  }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    run(y, nx_, x, ny_,
        [](const MatrixView<T>& g, const T* from, Index nz, T* to) { multiply_adjoint(g, from, nz, to); });
  }

 private:
  // Slices of `in` have in_rows rows, those of `out` out_rows.
  template <class Product>
  void run(const DistributedArray<T>& in, Index in_rows, DistributedArray<T>& out, Index out_rows,
           const Product& product) const {
    const Index in_slice = in_rows * nz_, out_slice = out_rows * nz_;
    const Index first = replicated_ ? first_ : 0;
    const T* from = in.local().data() + first * in_slice;
    T* to = out.local().data() + first * out_slice;
    for (Index s = 0; s < slices_; ++s)
      product(MatrixView<T>{kernel_.local().data() + s * nx_ * ny_, nx_, ny_, ny_}, from + s * in_slice, nz_,
              to + s * out_slice);
    if (!replicated_) return;
    const std::span<const Index> slices = kernel_.layout().extents(0);
    for (std::size_t r = 0; r < counts_.size(); ++r) counts_[r] = slices[r] * out_slice;
    communicator_.all_gather(std::span<const T>(to, static_cast<std::size_t>(slices_ * out_slice)),
                             out.local(), counts_);
  }

  mutable comm::Communicator communicator_;
  DistributedArray<T> kernel_;
  Index nx_, ny_, nz_;
  Index first_, slices_;  // of this rank
  bool replicated_;
  Layout domain_, range_;
  mutable std::vector<std::int64_t> counts_;  // elements that each rank gives to an all_gather
};

}  // namespace

template <class T>
AnyOperator<T> fredholm(DistributedArray<T> kernel, Index nz, Slices slices) {
  const Layout layout = kernel.layout();
  if (layout.is_stack() || layout.axes() != 3 || layout.split_axis() != 0)
    fail(
        ErrorCode::invalid_argument,
        fmt::format("a Fredholm operator needs a kernel [slices, nx, ny] that is split along axis 0, but was "
                    "given {}",
                    layout.describe()));
  if (nz < 1)
    fail(ErrorCode::invalid_argument, fmt::format("a Fredholm operator with nz = {}; use 1 or more", nz));
  return Fredholm<T>(std::move(kernel), nz, slices);
}

#define SHOAL_INSTANTIATE(T) template AnyOperator<T> fredholm(DistributedArray<T>, Index, Slices);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
