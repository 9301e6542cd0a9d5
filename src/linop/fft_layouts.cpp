// SPDX-License-Identifier: Apache-2.0
#include "linop/fft_layouts.h"

#include <algorithm>

#include "shoal/base/error.h"

namespace shoal::linop {
namespace {

using array::Shape;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

bool is_whole(const Layout& layout, int axis) {
  return layout.is_replicated() || layout.grid()[at(axis)] == 1;
}

// The parts of each axis but `changed`, which become whole with the extent in `shape`.
Layout with_shape(const Layout& layout, const Shape& shape) {
  if (layout.is_replicated()) return Layout::replicated(shape, layout.ranks());
  std::vector<std::vector<Index>> extents;
  for (int axis = 0; axis < layout.axes(); ++axis) {
    const auto parts = layout.extents(axis);
    if (layout.shape()[at(axis)] == shape[at(axis)])
      extents.emplace_back(parts.begin(), parts.end());
    else
      extents.push_back(array::balanced_extents(shape[at(axis)], layout.grid()[at(axis)]));
  }
  return Layout::blocks_unevenly(shape, std::move(extents));
}

// The grid over the axes that are `open` which leaves the fewest ranks without elements; of equals the one
// that cuts the fewest axes, and among them earlier axes.
struct GridSearch {
  const Shape& shape;
  const std::vector<bool>& open;
  std::vector<int> grid, best;
  double best_use = -1;
  int best_cuts = 0;

  void search(std::size_t axis, int ranks, double use, int cuts) {
    if (axis == shape.size()) {
      if (ranks != 1 || use < best_use || (use == best_use && cuts >= best_cuts)) return;
      best = grid;
      best_use = use;
      best_cuts = cuts;
      return;
    }
    for (int parts = ranks; parts >= 1; --parts) {
      if (ranks % parts != 0 || (parts > 1 && !open[axis])) continue;
      grid[axis] = parts;
      const double busy = static_cast<double>(std::min<Index>(parts, shape[axis])) / parts;
      search(axis + 1, ranks / parts, use * busy, cuts + (parts > 1 ? 1 : 0));
    }
    grid[axis] = 1;
  }
};

struct Choice {
  Layout layout;
  double use;  // part of the ranks that have elements
};

std::optional<Choice> best_layout(const Shape& shape, const std::vector<bool>& open, int ranks) {
  GridSearch search{shape, open, std::vector<int>(shape.size(), 1), {}};
  search.search(0, ranks, 1, 0);
  if (search.best.empty()) return std::nullopt;
  return Choice{Layout::blocks(shape, search.best), search.best_use};
}

class Planner {
 public:
  Planner(const Layout& domain, const std::vector<FftAxisExtents>& axes, bool last_first)
      : axes_(axes), shape_(domain.shape()), layout_(domain), pending_(last_first) {
    for (std::size_t i = 0; i < axes.size(); ++i) remaining_.push_back(i);
  }

  // Stages until all is transformed; the layout of the last is where the array is.
  std::vector<FftStage> run(const Layout* range) {
    if (layout_.is_replicated() && range && !range->is_replicated()) share_out(*range);
    for (;;) {
      transform_whole();
      if (remaining_.empty()) return std::move(stages_);
      layout_ = next(range);
    }
  }

 private:
  bool whole_in(const Layout& layout, std::size_t i) const { return is_whole(layout, axes_[i].axis); }

  void transform_whole() {
    if (pending_ && !whole_in(layout_, axes_.size() - 1)) return;
    std::vector<std::size_t> now, later;
    for (const std::size_t i : remaining_) (whole_in(layout_, i) ? now : later).push_back(i);
    if (now.empty()) return;
    pending_ = false;
    remaining_ = std::move(later);
    for (const std::size_t i : now) shape_[at(axes_[i].axis)] = axes_[i].after;
    const Layout after = with_shape(layout_, shape_);
    stages_.push_back({layout_, after, std::move(now)});
    layout_ = after;
  }

  // Whole remaining axes in the range: go there. Else as many of them as leave the ranks busy.
  Layout next(const Layout* range) const {
    if (range && !range->is_replicated() &&
        std::all_of(remaining_.begin(), remaining_.end(), [&](std::size_t i) { return whole_in(*range, i); }))
      return with_shape(*range, shape_);
    return split_elsewhere();
  }

  Layout split_elsewhere() const {
    std::optional<Choice> best;
    std::size_t best_count = 0;
    const std::size_t subsets = std::size_t{1} << remaining_.size();
    for (std::size_t subset = 1; subset < subsets; ++subset) {
      std::vector<bool> open(shape_.size(), true);
      std::size_t count = 0;
      bool last = false;
      for (std::size_t k = 0; k < remaining_.size(); ++k)
        if (subset >> k & 1) {
          open[at(axes_[remaining_[k]].axis)] = false;
          last = last || remaining_[k] == axes_.size() - 1;
          ++count;
        }
      if (pending_ && !last) continue;
      const std::optional<Choice> choice = best_layout(shape_, open, layout_.ranks());
      if (!choice) continue;
      if (!best || choice->use > best->use || (choice->use == best->use && count > best_count)) {
        best = choice;
        best_count = count;
      }
    }
    // With no other axis to split, every rank transforms all.
    return best ? best->layout : Layout::replicated(shape_, layout_.ranks());
  }

  // Replicas are cut for nothing, so that the work is shared out.
  void share_out(const Layout& range) {
    const bool fits =
        std::all_of(remaining_.begin(), remaining_.end(), [&](std::size_t i) { return whole_in(range, i); });
    layout_ = fits ? with_shape(range, shape_) : split_elsewhere();
  }

  const std::vector<FftAxisExtents>& axes_;
  array::Shape shape_;
  Layout layout_;
  bool pending_;
  std::vector<std::size_t> remaining_;
  std::vector<FftStage> stages_;
};

}  // namespace

FftRoute plan_route(const Layout& domain, const std::vector<FftAxisExtents>& axes, bool last_first,
                    const std::optional<Layout>& range, bool stay) {
  Shape shape = domain.shape();
  for (const FftAxisExtents& a : axes) shape[at(a.axis)] = a.after;
  std::optional<Layout> end = range;
  if (!end && !stay) end = with_shape(domain, shape);
  Planner planner(domain, axes, last_first);
  std::vector<FftStage> stages = planner.run(end ? &*end : nullptr);
  if (!end) end = stages.back().after;
  return {std::move(stages), *end};
}

}  // namespace shoal::linop
