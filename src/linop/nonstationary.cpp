// SPDX-License-Identifier: Apache-2.0
// Non-stationary convolution of split arrays: each rank gathers what its own samples take, in both
// directions, so nothing is added back to others.
#include "linop/instantiate.h"
#include "shoal/array/ghost_cells.h"
#include "shoal/linop/convolution_operators.h"

namespace shoal::linop {
namespace {

template <class T>
class NonStationaryConvolution {
 public:
  using domain_type = T;
  using range_type = T;
  NonStationaryConvolution(const comm::Communicator& communicator, const Layout& layout,
                           const local::FilterBank<T>& bank, int axis)
      : communicator_(communicator), layout_(layout), length_(bank.length()) {
    const array::Block block = layout.block(communicator.rank());
    lines_ = local::lines_of(block.extent, axis);
    const auto a = static_cast<std::size_t>(axis < 0 ? axis + layout.axes() : axis);
    const Index n = layout.shape()[a];
    forward_ = bank.gather_table(block.begin[a], block.extent[a], n);
    adjoint_ = bank.adjoint_gather_table(block.begin[a], block.extent[a], n);
    std::vector<Index> reach(layout.shape().size(), 0);
    reach[a] = bank.reach();
    ghosts_ =
        std::make_shared<array::GhostBlock<T>>(communicator, layout, reach, reach, array::Boundary::zero);
    const Shape extended = ghosts_->extended_shape(communicator.rank());
    extended_.resize(static_cast<std::size_t>(array::size_of_shape(extended)));
  }

  const comm::Communicator& communicator() const { return communicator_; }
  const Layout& domain() const { return layout_; }
  const Layout& range() const { return layout_; }
  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const { run(forward_, x, y); }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const { run(adjoint_, y, x); }

 private:
  void run(const std::vector<T>& table, const DistributedArray<T>& x, DistributedArray<T>& y) const {
    ghosts_->exchange(x.local(), extended_);
    local::gather_lines<T>(table, length_, lines_, extended_.data(), y.local().data());
  }

  comm::Communicator communicator_;
  Layout layout_;
  Index length_;
  local::Lines lines_;  // of this rank's block
  std::vector<T> forward_, adjoint_;
  std::shared_ptr<array::GhostBlock<T>> ghosts_;
  mutable std::vector<T> extended_;  // the block with `reach` samples more on both sides
};

}  // namespace

template <class T>
AnyOperator<T> nonstationary_convolution(const comm::Communicator& communicator, const Layout& layout,
                                         const local::FilterBank<T>& bank, int axis) {
  return NonStationaryConvolution<T>(communicator, layout, bank, axis);
}

#define SHOAL_INSTANTIATE(T)                                                                  \
  template AnyOperator<T> nonstationary_convolution(const comm::Communicator&, const Layout&, \
                                                    const local::FilterBank<T>&, int);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
