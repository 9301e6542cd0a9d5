// SPDX-License-Identifier: Apache-2.0
// Distributed operators side by side: their arrays are the members of stacks.
#include "shoal/linop/stacks.h"

#include "linop/instantiate.h"
#include "linop/workspace.h"
#include "shoal/base/error.h"

namespace shoal::linop {
namespace {

template <class D, class R>
struct StackedBlockDiagonal {
  using domain_type = D;
  using range_type = R;
  const comm::Communicator& communicator() const { return blocks.front().communicator(); }
  const Layout& domain() const { return in; }
  const Layout& range() const { return out; }
  void apply(const DistributedArray<D>& x, DistributedArray<R>& y) const {
    for (int i = 0; i < static_cast<int>(blocks.size()); ++i)
      blocks[static_cast<std::size_t>(i)].apply(x.member(i), y.member(i));
  }
  void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const {
    for (int i = 0; i < static_cast<int>(blocks.size()); ++i)
      blocks[static_cast<std::size_t>(i)].apply_adjoint(y.member(i), x.member(i));
  }
  std::vector<AnyOperator<D, R>> blocks;
  Layout in, out;
};

// The horizontal stack is its adjoint, as it is of local blocks.
template <class D, class R>
struct StackedVertical {
  using domain_type = D;
  using range_type = R;
  const comm::Communicator& communicator() const { return blocks.front().communicator(); }
  const Layout& domain() const { return blocks.front().domain(); }
  const Layout& range() const { return out; }
  void apply(const DistributedArray<D>& x, DistributedArray<R>& y) const {
    for (int i = 0; i < static_cast<int>(blocks.size()); ++i)
      blocks[static_cast<std::size_t>(i)].apply(x, y.member(i));
  }
  void apply_adjoint(const DistributedArray<R>& y, DistributedArray<D>& x) const {
    blocks.front().apply_adjoint(y.member(0), x);
    for (int i = 1; i < static_cast<int>(blocks.size()); ++i) {
      DistributedArray<D>& next = term.get(communicator(), domain());
      blocks[static_cast<std::size_t>(i)].apply_adjoint(y.member(i), next);
      axpby(D(1), next, D(1), x);
    }
  }
  std::vector<AnyOperator<D, R>> blocks;
  Layout out;
  mutable Workspace<D> term{};
};

template <class D, class R>
void require_some(const std::vector<AnyOperator<D, R>>& blocks) {
  if (blocks.empty())
    fail(ErrorCode::invalid_argument, "a stack of operators needs at least one; it was given none");
}

template <class D, class R>
Layout stacked_ranges(const std::vector<AnyOperator<D, R>>& blocks) {
  std::vector<Layout> layouts;
  for (const AnyOperator<D, R>& block : blocks) layouts.push_back(block.range());
  return Layout::stack(std::move(layouts));
}

template <class D, class R>
Layout stacked_domains(const std::vector<AnyOperator<D, R>>& blocks) {
  std::vector<Layout> layouts;
  for (const AnyOperator<D, R>& block : blocks) layouts.push_back(block.domain());
  return Layout::stack(std::move(layouts));
}

template <class D, class R>
AnyOperator<D, R> make_vertical(std::vector<AnyOperator<D, R>> blocks, const char* what) {
  require_some(blocks);
  for (const AnyOperator<D, R>& block : blocks) require_equal(block.domain(), blocks.front().domain(), what);
  Layout out = stacked_ranges(blocks);
  return StackedVertical<D, R>{std::move(blocks), std::move(out)};
}

}  // namespace

template <class D, class R>
AnyOperator<D, R> stacked_block_diagonal(std::vector<AnyOperator<D, R>> blocks) {
  require_some(blocks);
  Layout in = stacked_domains(blocks), out = stacked_ranges(blocks);
  return StackedBlockDiagonal<D, R>{std::move(blocks), std::move(in), std::move(out)};
}

template <class D, class R>
AnyOperator<D, R> stacked_vertical(std::vector<AnyOperator<D, R>> blocks) {
  return make_vertical(std::move(blocks), "the domains of the operators of a vertical stack");
}

template <class D, class R>
AnyOperator<D, R> stacked_horizontal(std::vector<AnyOperator<D, R>> blocks) {
  std::vector<AnyOperator<R, D>> adjoints;
  for (const AnyOperator<D, R>& block : blocks) adjoints.push_back(adjoint(block));
  return adjoint(make_vertical(std::move(adjoints), "the ranges of the operators of a horizontal stack"));
}

#define SHOAL_INSTANTIATE(D, R)                                                      \
  template AnyOperator<D, R> stacked_block_diagonal(std::vector<AnyOperator<D, R>>); \
  template AnyOperator<D, R> stacked_vertical(std::vector<AnyOperator<D, R>>);       \
  template AnyOperator<D, R> stacked_horizontal(std::vector<AnyOperator<D, R>>);
SHOAL_LINOP_PAIRS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
