// SPDX-License-Identifier: Apache-2.0
#include "shoal/array/ghost_cells.h"

#include <fmt/format.h>

#include "array/box_exchange.h"
#include "shoal/array/box.h"
#include "shoal/base/error.h"

namespace shoal::array {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

void check(const comm::Communicator& communicator, const Layout& layout, const std::vector<Width>& widths) {
  if (layout.ranks() != communicator.size())
    fail(ErrorCode::invalid_argument, fmt::format("ghost cells of {} on a communicator of {} ranks",
                                                  layout.describe(), communicator.size()));
  for (const Width& width : widths)
    if (width.before < 0 || width.after < 0)
      fail(ErrorCode::invalid_argument,
           fmt::format("ghost cells of width {} before and {} after", width.before, width.after));
}

void check_length(std::size_t given, std::size_t expected, const char* what) {
  if (given != expected)
    fail(ErrorCode::invalid_argument,
         fmt::format("ghost cells: {} has {} elements instead of {}", what, given, expected));
}

int normalised(int axis, int axes) {
  if (axis < -axes || axis >= axes)
    fail(ErrorCode::invalid_argument, fmt::format("ghost planes along axis {} of {} axes", axis, axes));
  return axis < 0 ? axis + axes : axis;
}

std::vector<Shape> plane_shapes(const Shape& block, int axis, Width width) {
  std::vector<Shape> shapes(2, block);
  shapes[0][at(axis)] = width.before;
  shapes[1][at(axis)] = width.after;
  return shapes;
}

}  // namespace

template <class T>
struct GhostPlanes<T>::Plan {
  Layout layout;
  Width width;  // of this rank
  std::vector<T> before, after;
  BoxExchange<T> exchange;

  Plan(const comm::Communicator& communicator, const Layout& layout_in, int axis, Width wanted,
       Boundary boundary)
      : layout(layout_in),
        width(actual_width(layout, communicator.rank(), axis, wanted, boundary)),
        exchange(
            communicator, layout,
            [&](Rank rank) { return plane_boxes(layout, rank, axis, wanted, boundary); },
            plane_shapes(layout.block(communicator.rank()).extent, axis, width)) {
    const std::vector<Shape> shapes = plane_shapes(layout.block(communicator.rank()).extent, axis, width);
    before.resize(at(size_of_shape(shapes[0])));
    after.resize(at(size_of_shape(shapes[1])));
  }
};

template <class T>
GhostPlanes<T>::GhostPlanes(const comm::Communicator& communicator, const Layout& layout, int axis,
                            Index before, Index after, Boundary boundary) {
  check(communicator, layout, {{before, after}});
  plan_ = std::make_unique<Plan>(communicator, layout, normalised(axis, layout.axes()), Width{before, after},
                                 boundary);
}

template <class T>
GhostPlanes<T>::~GhostPlanes() = default;
template <class T>
GhostPlanes<T>::GhostPlanes(GhostPlanes&&) noexcept = default;

template <class T>
void GhostPlanes<T>::start(const DistributedArray<T>& x) {
  require_equal(x.layout(), plan_->layout, "ghost planes");
  T* const targets[] = {plan_->before.data(), plan_->after.data()};
  plan_->exchange.start(x.local().data(), targets);
}

template <class T>
void GhostPlanes<T>::finish() {
  plan_->exchange.finish();
}

template <class T>
std::span<const T> GhostPlanes<T>::before() const {
  return plan_->before;
}
template <class T>
std::span<const T> GhostPlanes<T>::after() const {
  return plan_->after;
}
template <class T>
Index GhostPlanes<T>::before_width() const {
  return plan_->width.before;
}
template <class T>
Index GhostPlanes<T>::after_width() const {
  return plan_->width.after;
}

template <class T>
void GhostPlanes<T>::add_back(std::span<const T> before, std::span<const T> after, DistributedArray<T>& x) {
  require_equal(x.layout(), plan_->layout, "ghost planes added back");
  check_length(before.size(), plan_->before.size(), "before");
  check_length(after.size(), plan_->after.size(), "after");
  const T* const targets[] = {before.data(), after.data()};
  plan_->exchange.add_back(targets, x.local().data());
}

template <class T>
struct GhostBlock<T>::Plan {
  Layout layout;
  std::vector<Width> widths;
  Boundary boundary;
  Rank rank;
  BoxExchange<T> exchange;
  BoxWriter<T> writer;

  Plan(const comm::Communicator& communicator, const Layout& layout_in, std::vector<Width> widths_in,
       Boundary boundary_in)
      : layout(layout_in),
        widths(std::move(widths_in)),
        boundary(boundary_in),
        rank(communicator.rank()),
        exchange(communicator, layout, [&](Rank r) { return extended_boxes(layout, r, widths, boundary); },
                 {extended_shape(rank)}) {}

  Shape extended_shape(Rank r) const {
    Shape shape = layout.block(r).extent;
    for (int axis = 0; axis < layout.axes(); ++axis) {
      const Width width = actual_width(layout, r, axis, widths[at(axis)], boundary);
      shape[at(axis)] += width.before + width.after;
    }
    return shape;
  }
  Shape own_begin(Rank r) const {
    Shape begin;
    for (int axis = 0; axis < layout.axes(); ++axis)
      begin.push_back(actual_width(layout, r, axis, widths[at(axis)], boundary).before);
    return begin;
  }
  void check_lengths(std::size_t own, std::size_t extended) const {
    check_length(own, at(layout.local_size(rank)), "own");
    check_length(extended, at(size_of_shape(extended_shape(rank))), "extended");
  }
};

template <class T>
GhostBlock<T>::GhostBlock(const comm::Communicator& communicator, const Layout& layout,
                          std::vector<Index> before, std::vector<Index> after, Boundary boundary) {
  if (before.size() != at(layout.axes()) || after.size() != at(layout.axes()))
    fail(ErrorCode::invalid_argument, fmt::format("ghost cells: {} widths before and {} after for {} axes",
                                                  before.size(), after.size(), layout.axes()));
  std::vector<Width> widths;
  for (std::size_t axis = 0; axis < before.size(); ++axis) widths.push_back({before[axis], after[axis]});
  check(communicator, layout, widths);
  plan_ = std::make_unique<Plan>(communicator, layout, std::move(widths), boundary);
}

template <class T>
GhostBlock<T>::~GhostBlock() = default;
template <class T>
GhostBlock<T>::GhostBlock(GhostBlock&&) noexcept = default;

template <class T>
Shape GhostBlock<T>::extended_shape(Rank rank) const {
  return plan_->extended_shape(rank);
}
template <class T>
Shape GhostBlock<T>::own_begin(Rank rank) const {
  return plan_->own_begin(rank);
}

template <class T>
void GhostBlock<T>::exchange(std::span<const T> own, std::span<T> extended) {
  plan_->check_lengths(own.size(), extended.size());
  T* const targets[] = {extended.data()};
  plan_->exchange.start(own.data(), targets);
  plan_->exchange.finish();
}

template <class T>
void GhostBlock<T>::exchange_adjoint(std::span<const T> extended, std::span<T> own) {
  plan_->check_lengths(own.size(), extended.size());
  const T* const targets[] = {extended.data()};
  plan_->exchange.add_back(targets, own.data());
}

template <class T>
void GhostBlock<T>::crop(std::span<const T> extended, std::span<T> own) const {
  plan_->check_lengths(own.size(), extended.size());
  const Shape shape = plan_->extended_shape(plan_->rank), begin = plan_->own_begin(plan_->rank);
  const Shape block = plan_->layout.block(plan_->rank).extent;
  const Shape origin(block.size(), 0);
  if (plan_->writer.suits(block))
    plan_->writer.copy(extended.data(), {shape, begin}, own.data(), {block, origin}, block);
  else
    copy_box(extended.data(), {shape, begin}, own.data(), {block, origin}, block);
}

template <class T>
void GhostBlock<T>::surround(std::span<const T> own, std::span<T> extended) const {
  plan_->check_lengths(own.size(), extended.size());
  const Shape shape = plan_->extended_shape(plan_->rank), begin = plan_->own_begin(plan_->rank);
  const Shape block = plan_->layout.block(plan_->rank).extent;
  const Shape origin(block.size(), 0);
  if (plan_->writer.suits(block)) {
    plan_->writer.surround(own.data(), {block, origin}, extended.data(), {shape, begin}, block);
  } else {
    std::fill(extended.begin(), extended.end(), T(0));
    copy_box(own.data(), {block, origin}, extended.data(), {shape, begin}, block);
  }
}

#define SHOAL_ARRAY_GHOSTS(T)    \
  template class GhostPlanes<T>; \
  template class GhostBlock<T>;
SHOAL_ARRAY_GHOSTS(float)
SHOAL_ARRAY_GHOSTS(double)
SHOAL_ARRAY_GHOSTS(std::complex<float>)
SHOAL_ARRAY_GHOSTS(std::complex<double>)
#undef SHOAL_ARRAY_GHOSTS

}  // namespace shoal::array
