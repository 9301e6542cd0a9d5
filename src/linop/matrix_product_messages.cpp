// SPDX-License-Identifier: Apache-2.0
// The product by panels that are sent, one ahead of the one that is multiplied. With Y's block as what stays:
//   Y [n, m]         += A [n, panel] X [panel, m]      A sent along the row, X along the column
//   X [panel, m]      = sum of A [n, panel]^H Y [n, m] over the ranks of the column, A sent along the row
#include <algorithm>
#include <array>

#include "linop/instantiate.h"
#include "linop/matrix_product_plan.h"
#include "linop/matrix_view.h"

namespace shoal::linop {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

template <class T>
class ProductByMessages {
 public:
  using domain_type = T;
  using range_type = T;
  ProductByMessages(const ProductPlan& plan, DistributedArray<T> a, Index widest_panel)
      : communicator_(a.communicator()),
        plan_(plan),
        a_(std::move(a)),
        panels_(plan.panels(widest_panel)),
        row_(*communicator_.split(plan.row, plan.column)),
        column_(*communicator_.split(plan.column, plan.row)) {
    Index widest = 0;
    for (const Panel& panel : panels_) widest = std::max(widest, panel.width);
    for (Lane& lane : lanes_) {
      if (plan.grid_columns > 1) lane.a.resize(at(plan.n * widest));
      if (plan.grid_rows > 1) lane.x.resize(at(widest * plan.m));
    }
  }

  const comm::Communicator& communicator() const { return communicator_; }
  const Layout& domain() const { return plan_.x; }
  const Layout& range() const { return plan_.y; }

  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const {
    if (panels_.empty()) y.fill(T(0));
    for (std::size_t p = 0; p <= panels_.size(); ++p) {
      if (p < panels_.size()) {
        send_a(p);
        send_x(p, x);
      }
      if (p == 0) continue;
      Lane& lane = lane_of(p - 1);
      lane.a_moving.wait();
      lane.x_moving.wait();
      multiply(lane.a_panel, lane.x_panel, plan_.m, y.local().data(), p > 1);
    }
  }

  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    for (std::size_t p = 0; p <= panels_.size(); ++p) {
      if (p < panels_.size()) send_a(p);
      if (p == 0) continue;
      Lane& lane = lane_of(p - 1);
      lane.a_moving.wait();
      const Panel& panel = panels_[p - 1];
      T* target = panel.x_row == plan_.row ? x.local().data() + panel.x_offset * plan_.m : nullptr;
      if (plan_.grid_rows == 1) {
        multiply_adjoint(lane.a_panel, y.local().data(), plan_.m, target);
        continue;
      }
      lane.x_moving.wait();  // the sum of the panel before the last, which was in this memory
      multiply_adjoint(lane.a_panel, y.local().data(), plan_.m, lane.x.data());
      const std::size_t count = at(panel.width * plan_.m);
      lane.x_moving =
          column_.reduce_async(std::span<const T>(lane.x.data(), count),
                               std::span<T>(target, target ? count : 0), comm::Reduction::sum, panel.x_row);
    }
    for (Lane& lane : lanes_) lane.x_moving.wait();
  }

 private:
  // Two panels are at hand at a time: the one that is multiplied and the next.
  struct Lane {
    std::vector<T> a, x;  // [n, width] and [width, m], of others
    MatrixView<T> a_panel;
    const T* x_panel = nullptr;
    comm::Request a_moving, x_moving;
  };
  Lane& lane_of(std::size_t panel) const { return lanes_[panel % 2]; }

  void send_a(std::size_t p) const {
    const Panel& panel = panels_[p];
    Lane& lane = lane_of(p);
    const bool own = panel.a_column == plan_.column;
    const MatrixView<T> source{a_.local().data() + panel.a_offset, plan_.n, panel.width, plan_.k};
    lane.a_panel = own ? source : MatrixView<T>{lane.a.data(), plan_.n, panel.width, panel.width};
    if (plan_.grid_columns == 1) return;
    if (own)
      for (Index i = 0; i < plan_.n; ++i)
        std::copy_n(source.data + i * source.row_length, panel.width, lane.a.data() + i * panel.width);
    lane.a_moving =
        row_.broadcast_async(std::span<T>(lane.a.data(), at(plan_.n * panel.width)), panel.a_column);
  }

  void send_x(std::size_t p, const DistributedArray<T>& x) const {
    const Panel& panel = panels_[p];
    Lane& lane = lane_of(p);
    const bool own = panel.x_row == plan_.row;
    lane.x_panel = own ? x.local().data() + panel.x_offset * plan_.m : lane.x.data();
    if (plan_.grid_rows == 1) return;
    // (The root's memory is read alone.)
    lane.x_moving =
        column_.broadcast_async(std::span<const T>(lane.x_panel, at(panel.width * plan_.m)), panel.x_row);
  }

  mutable comm::Communicator communicator_;
  ProductPlan plan_;
  DistributedArray<T> a_;
  std::vector<Panel> panels_;
  mutable comm::Communicator row_, column_;
  mutable std::array<Lane, 2> lanes_;
};

}  // namespace

template <class T>
AnyOperator<T> product_by_messages(const ProductPlan& plan, DistributedArray<T> a, Index widest_panel) {
  return ProductByMessages<T>(plan, std::move(a), widest_panel);
}

#define SHOAL_INSTANTIATE(T) \
  template AnyOperator<T> product_by_messages(const ProductPlan&, DistributedArray<T>, Index);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
