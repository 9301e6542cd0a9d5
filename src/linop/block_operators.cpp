// SPDX-License-Identifier: Apache-2.0
// Distributed operators whose blocks are local ones.
#include <algorithm>

#include <fmt/format.h>

#include "linop/block_sizes.h"
#include "linop/instantiate.h"
#include "shoal/base/error.h"
#include "shoal/linop/stacks.h"

namespace shoal::linop {
namespace {

template <class T>
struct OnReplicas {
  using domain_type = T;
  using range_type = T;
  const comm::Communicator& communicator() const { return group; }
  const Layout& domain() const { return in; }
  const Layout& range() const { return out; }
  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const { op.apply(x.local(), y.local()); }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    op.apply_adjoint(y.local(), x.local());
  }
  comm::Communicator group;
  Layout in, out;
  AnyLocalOperator<T> op;
};

template <class T>
struct BlockDiagonal {
  using domain_type = T;
  using range_type = T;
  const comm::Communicator& communicator() const { return group; }
  const Layout& domain() const { return in; }
  const Layout& range() const { return out; }
  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const {
    std::span<const T> from = x.local();
    std::span<T> to = y.local();
    for (const AnyLocalOperator<T>& block : blocks) {
      const auto rows = static_cast<std::size_t>(block.rows()), cols = static_cast<std::size_t>(block.cols());
      block.apply(from.first(cols), to.first(rows));
      from = from.subspan(cols);
      to = to.subspan(rows);
    }
  }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    std::span<const T> from = y.local();
    std::span<T> to = x.local();
    for (const AnyLocalOperator<T>& block : blocks) {
      const auto rows = static_cast<std::size_t>(block.rows()), cols = static_cast<std::size_t>(block.cols());
      block.apply_adjoint(from.first(rows), to.first(cols));
      from = from.subspan(rows);
      to = to.subspan(cols);
    }
  }
  comm::Communicator group;
  Layout in, out;
  std::vector<AnyLocalOperator<T>> blocks;
};

// The horizontal stack is the adjoint of the vertical one of its blocks' adjoints.
template <class T>
struct VerticalStack {
  using domain_type = T;
  using range_type = T;
  const comm::Communicator& communicator() const { return group; }
  const Layout& domain() const { return in; }
  const Layout& range() const { return out; }
  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const {
    std::span<T> to = y.local();
    for (const AnyLocalOperator<T>& block : blocks) {
      const auto rows = static_cast<std::size_t>(block.rows());
      block.apply(x.local(), to.first(rows));
      to = to.subspan(rows);
    }
  }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    std::span<const T> from = y.local();
    const std::span<T> sum = x.local();
    if (blocks.empty()) std::ranges::fill(sum, T(0));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto rows = static_cast<std::size_t>(blocks[i].rows());
      if (i == 0) {
        blocks[i].apply_adjoint(from.first(rows), sum);
      } else {
        term.resize(sum.size());
        blocks[i].apply_adjoint(from.first(rows), term);
        for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += term[j];
      }
      from = from.subspan(rows);
    }
    group.all_reduce(sum, comm::Reduction::sum);
  }
  mutable comm::Communicator group;
  Layout in, out;
  std::vector<AnyLocalOperator<T>> blocks;
  mutable std::vector<T> term{};
};

template <class T>
AnyOperator<T> make_vertical(const comm::Communicator& communicator, std::vector<AnyLocalOperator<T>> blocks,
                             const char* what) {
  const BlockSizes sizes = gather_equal_widths(communicator, blocks, what);
  Index rows = 0;
  for (const Index part : sizes.rows) rows += part;
  return VerticalStack<T>{communicator, Layout::replicated({sizes.width}, communicator.size()),
                          Layout::split_unevenly({rows}, sizes.rows), std::move(blocks)};
}

}  // namespace

template <class T>
AnyOperator<T> on_replicas(const comm::Communicator& communicator, const AnyLocalOperator<T>& op) {
  // Both sizes must be equal: those of op, and of its adjoint.
  const Index cols =
      gather_equal_widths<T>(communicator, {op}, "an operator on replicas, which takes one array,").width;
  const Index rows =
      gather_equal_widths<T>(communicator, {adjoint(op)}, "an operator on replicas, which gives one array,")
          .width;
  const int ranks = communicator.size();
  return OnReplicas<T>{communicator, Layout::replicated({cols}, ranks), Layout::replicated({rows}, ranks),
                       op};
}

template <class T>
AnyOperator<T> block_diagonal(const comm::Communicator& communicator,
                              std::vector<AnyLocalOperator<T>> blocks) {
  const BlockSizes sizes = gather_sizes(communicator, blocks);
  Index rows = 0, cols = 0;
  for (const Index part : sizes.rows) rows += part;
  for (const Index part : sizes.cols) cols += part;
  return BlockDiagonal<T>{communicator, Layout::split_unevenly({cols}, sizes.cols),
                          Layout::split_unevenly({rows}, sizes.rows), std::move(blocks)};
}

template <class T>
AnyOperator<T> vertical_stack(const comm::Communicator& communicator,
                              std::vector<AnyLocalOperator<T>> blocks) {
  return make_vertical(communicator, std::move(blocks), "a vertical stack (equal numbers of columns)");
}

template <class T>
AnyOperator<T> horizontal_stack(const comm::Communicator& communicator,
                                std::vector<AnyLocalOperator<T>> blocks) {
  for (AnyLocalOperator<T>& block : blocks) block = adjoint(block);
  return adjoint(
      make_vertical(communicator, std::move(blocks), "a horizontal stack (equal numbers of rows)"));
}

#define SHOAL_INSTANTIATE(T)                                                                           \
  template AnyOperator<T> on_replicas(const comm::Communicator&, const AnyLocalOperator<T>&);          \
  template AnyOperator<T> block_diagonal(const comm::Communicator&, std::vector<AnyLocalOperator<T>>); \
  template AnyOperator<T> vertical_stack(const comm::Communicator&, std::vector<AnyLocalOperator<T>>); \
  template AnyOperator<T> horizontal_stack(const comm::Communicator&, std::vector<AnyLocalOperator<T>>);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
