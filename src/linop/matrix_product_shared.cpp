// SPDX-License-Identifier: Apache-2.0
// The product where the ranks read each other's memory. A lies there for good; X, or Y in the adjoint, is
// copied there by each application. Then each rank computes its block of the result whole, from the blocks
// where they lie: nothing is sent, and nothing is summed between ranks.
#include <algorithm>

#include "linop/instantiate.h"
#include "linop/matrix_product_plan.h"
#include "linop/matrix_view.h"
#include "shoal/base/error.h"
#include "shoal/comm/transport.h"

namespace shoal::linop {
namespace {

// Where things lie in a rank's memory, in elements: A, then X or Y. The same on all ranks.
struct Places {
  Index operand = 0, end = 0;
};

Places places_of(const ProductPlan& plan) {
  Places places;
  Index operand = 0;
  for (Rank r = 0; r < plan.a.ranks(); ++r) {
    places.operand = std::max(places.operand, plan.a.local_size(r));
    operand = std::max({operand, plan.x.local_size(r), plan.y.local_size(r)});
  }
  places.end = places.operand + (plan.grid_rows > 1 ? operand : 0);
  return places;
}

template <class T>
class ProductInSharedMemory {
 public:
  using domain_type = T;
  using range_type = T;
  ProductInSharedMemory(const comm::Communicator& communicator, const ProductPlan& plan,
                        std::shared_ptr<comm::SymmetricMemory> memory)
      : communicator_(communicator), plan_(plan), memory_(std::move(memory)) {
    for (const Panel& panel : plan.panels(std::max<Index>(1, plan.a.shape()[1]))) {
      forward_.push_back({columns(plan.row, panel), panel.x_row, panel.x_offset});
      if (panel.x_row != plan.row) continue;
      for (int row = 0; row < plan.grid_rows; ++row)
        adjoint_.push_back({columns(row, panel), row, panel.x_offset});
    }
    for (int row = 0; row < plan.grid_rows; ++row)
      operands_.push_back(memory_of(plan.rank_at(row, plan.column)) + places_of(plan).operand);
  }

  const comm::Communicator& communicator() const { return communicator_; }
  const Layout& domain() const { return plan_.x; }
  const Layout& range() const { return plan_.y; }

  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const {
    publish(x);
    if (forward_.empty()) y.fill(T(0));
    bool add = false;
    for (const Step& step : forward_) {
      multiply(step.a, operand(x, step.row) + step.x_offset * plan_.m, plan_.m, y.local().data(), add);
      add = true;
    }
    communicator_.barrier();  // nobody reads this rank's memory any more
  }

  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    publish(y);
    for (const Step& step : adjoint_)
      multiply_adjoint(step.a, operand(y, step.row), plan_.m, x.local().data() + step.x_offset * plan_.m,
                       step.row > 0);
    communicator_.barrier();
  }

 private:
  // Some columns of a block of A, the row of the grid whose ranks hold the operand's part for it, and where
  // in a block of X those columns' rows begin.
  struct Step {
    MatrixView<T> a;
    int row;
    Index x_offset;
  };

  T* memory_of(Rank rank) const { return reinterpret_cast<T*>(memory_->direct(rank)); }

  MatrixView<T> columns(int row, const Panel& panel) const {
    const Rank owner = plan_.rank_at(row, panel.a_column);
    const array::Block block = plan_.a.block(owner);
    return {memory_of(owner) + panel.a_offset, block.extent[0], panel.width, block.extent[1]};
  }

  // The operand is read along the columns of the grid.
  void publish(const DistributedArray<T>& operand) const {
    if (plan_.grid_rows == 1) return;
    std::ranges::copy(operand.local(), operands_[static_cast<std::size_t>(plan_.row)]);
    communicator_.barrier();
  }
  const T* operand(const DistributedArray<T>& own, int row) const {
    return row == plan_.row ? own.local().data() : operands_[static_cast<std::size_t>(row)];
  }

  mutable comm::Communicator communicator_;
  ProductPlan plan_;
  std::shared_ptr<comm::SymmetricMemory> memory_;
  std::vector<Step> forward_, adjoint_;
  std::vector<T*> operands_;  // where each rank of this column copies its operand to
};

// Collective; null on all ranks where one cannot give or reach it.
std::shared_ptr<comm::SymmetricMemory> allocate_within_host(comm::Communicator& communicator,
                                                            std::size_t bytes) {
  for (Rank r = 0; r < communicator.size(); ++r)
    if (communicator.host(r) != communicator.host(0)) return nullptr;
  std::shared_ptr<comm::SymmetricMemory> memory;
  try {
    memory = communicator.allocate(bytes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    return nullptr;  // all ranks see this error where one does
  }
  int reached = 1;
  for (Rank r = 0; r < communicator.size(); ++r) reached = memory->direct(r) ? reached : 0;
  return communicator.all_reduce(reached, comm::Reduction::min) == 1 ? memory : nullptr;
}

}  // namespace

template <class T>
std::optional<AnyOperator<T>> product_in_shared_memory(const ProductPlan& plan,
                                                       const DistributedArray<T>& a) {
  comm::Communicator communicator = a.communicator();
  const std::size_t bytes = static_cast<std::size_t>(places_of(plan).end) * sizeof(T);
  const std::shared_ptr<comm::SymmetricMemory> memory =
      allocate_within_host(communicator, std::max(bytes, sizeof(T)));
  if (!memory) return std::nullopt;
  std::ranges::copy(a.local(), reinterpret_cast<T*>(memory->local()));
  communicator.barrier();
  return ProductInSharedMemory<T>(communicator, plan, memory);
}

#define SHOAL_INSTANTIATE(T)                                                          \
  template std::optional<AnyOperator<T>> product_in_shared_memory(const ProductPlan&, \
                                                                  const DistributedArray<T>&);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
