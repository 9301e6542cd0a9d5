// SPDX-License-Identifier: Apache-2.0
// Arrays: memory, copies, members, and the way from and to the global array.
#include "shoal/array/distributed_array.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "array/local_parts.h"
#include "array/memory.h"
#include "shoal/array/box.h"
#include "shoal/base/error.h"

namespace shoal::array {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

const Layout& checked(const comm::Communicator& communicator, const Layout& layout) {
  if (layout.ranks() != communicator.size())
    fail(ErrorCode::invalid_argument, fmt::format("a layout ({}) for {} ranks on a communicator of {}",
                                                  layout.describe(), layout.ranks(), communicator.size()));
  return layout;
}

template <class T>
void copy_elements(std::span<const T> from, std::span<T> to) {
  if (!from.empty()) std::memmove(static_cast<void*>(to.data()), from.data(), from.size_bytes());
}

// The part of `rank` between the global array and memory of its own.
template <class T>
void take_part(const Layout& layout, Rank rank, const T* full, T* part) {
  const Block block = layout.block(rank);
  const Shape origin(block.extent.size(), 0);
  copy_box(full, {layout.shape(), block.begin}, part, {block.extent, origin}, block.extent);
}
template <class T>
void put_part(const Layout& layout, Rank rank, const T* part, T* full) {
  const Block block = layout.block(rank);
  const Shape origin(block.extent.size(), 0);
  copy_box(part, {block.extent, origin}, full, {layout.shape(), block.begin}, block.extent);
}

std::vector<std::int64_t> local_sizes(const Layout& layout) {
  std::vector<std::int64_t> sizes;
  for (Rank rank = 0; rank < layout.ranks(); ++rank) sizes.push_back(layout.local_size(rank));
  return sizes;
}

// Collective: the global array of `x` (not a stack) in `full`, on `root` alone or, where it is -1,
// everywhere.
template <class T>
void gather_full(const DistributedArray<T>& x, std::span<T> full, Rank root) {
  const Layout& layout = x.layout();
  const bool here = root < 0 || root == x.rank();
  if (layout.is_replicated()) {
    if (here) copy_elements<T>(x.local(), full);
    return;
  }
  comm::Communicator communicator = x.communicator();
  const std::vector<std::int64_t> counts = local_sizes(layout);
  const bool in_order = is_in_rank_order(layout);
  std::vector<T> parts(in_order || !here ? 0 : at(layout.size()));
  const std::span<T> target = !here ? std::span<T>() : in_order ? full : std::span<T>(parts);
  if (root < 0)
    communicator.all_gather(x.local(), target, counts);
  else
    communicator.gather(x.local(), target, counts, root);
  if (in_order || !here) return;
  const T* part = parts.data();
  for (Rank rank = 0; rank < layout.ranks(); ++rank) {
    put_part(layout, rank, part, full.data());
    part += counts[at(rank)];
  }
}

template <class T>
void gather_members(const DistributedArray<T>& x, std::span<T> full, Rank root) {
  if (!x.layout().is_stack()) return gather_full(x, full, root);
  std::size_t begin = 0;
  for (int i = 0; i < static_cast<int>(x.layout().members().size()); ++i) {
    const DistributedArray<T>& member = x.member(i);
    gather_members(member, full.empty() ? full : full.subspan(begin, at(member.size())), root);
    begin += at(member.size());
  }
}

template <class T>
void scatter_members(DistributedArray<T>& x, const T* full) {
  if (!x.layout().is_stack()) return take_part(x.layout(), x.rank(), full, x.local().data());
  for (int i = 0; i < static_cast<int>(x.layout().members().size()); ++i) {
    scatter_members(x.member(i), full);
    full += x.member(i).size();
  }
}

}  // namespace

template <class T>
DistributedArray<T>::DistributedArray(const comm::Communicator& communicator, const Layout& layout,
                                      std::shared_ptr<void> memory, T* data)
    : communicator_(communicator),
      layout_(checked(communicator, layout)),
      memory_(std::move(memory)),
      data_(data),
      local_size_(at(layout.local_size(communicator.rank()))),
      view_(!memory_) {
  make_members();
}

template <class T>
DistributedArray<T>::DistributedArray(const comm::Communicator& communicator, const Layout& layout,
                                      Uninitialised)
    : communicator_(communicator),
      layout_(checked(communicator, layout)),
      local_size_(at(layout.local_size(communicator.rank()))) {
  if (local_size_ > std::numeric_limits<std::size_t>::max() / sizeof(T))
    fail(ErrorCode::out_of_memory, fmt::format("{} elements on rank {} do not fit", local_size_, rank()));
  memory_ = allocate(local_size_ * sizeof(T));
  data_ = static_cast<T*>(memory_.get());
  make_members();
}

template <class T>
DistributedArray<T>::DistributedArray(const comm::Communicator& communicator, const Layout& layout)
    : DistributedArray(communicator, layout, uninitialised) {
  fill(T(0));
}

template <class T>
DistributedArray<T>::DistributedArray(const DistributedArray& other)
    : DistributedArray(other.communicator_, other.layout_, uninitialised) {
  take_mask(other.mask_);
  copy_elements<T>(other.local(), local());
}

template <class T>
DistributedArray<T>::DistributedArray(DistributedArray&& other) noexcept
    : communicator_(other.communicator_),
      layout_(std::move(other.layout_)),
      mask_(std::move(other.mask_)),
      memory_(std::move(other.memory_)),
      data_(std::exchange(other.data_, nullptr)),
      local_size_(std::exchange(other.local_size_, 0)),
      view_(std::exchange(other.view_, false)),
      members_(std::move(other.members_)) {}

template <class T>
DistributedArray<T>& DistributedArray<T>::operator=(const DistributedArray& other) {
  if (this == &other) return *this;
  if (layout_ == other.layout_)
    copy_elements<T>(other.local(), local());
  else
    *this = DistributedArray(other);
  return *this;
}

template <class T>
DistributedArray<T>& DistributedArray<T>::operator=(DistributedArray&& other) {
  if (this == &other) return *this;
  const bool equal = layout_ == other.layout_;
  if (view_ && !equal) fail_unequal(layout_, other.layout_, "assignment to a view");
  if (equal && (view_ || other.view_)) {
    copy_elements<T>(other.local(), local());
    return *this;
  }
  if (other.view_) return *this = DistributedArray(static_cast<const DistributedArray&>(other));
  if (!equal) {
    communicator_ = other.communicator_;
    mask_ = other.mask_;
    members_.clear();
  }
  Layout layout = std::move(other.layout_);  // also when equal: `other` keeps none
  if (!equal) layout_ = std::move(layout);
  memory_ = std::move(other.memory_);
  data_ = std::exchange(other.data_, nullptr);
  local_size_ = std::exchange(other.local_size_, 0);
  other.members_.clear();
  if (memory_) make_members();  // else `other` had been moved from
  take_mask(mask_);
  return *this;
}

template <class T>
DistributedArray<T>::~DistributedArray() = default;

template <class T>
DistributedArray<T> DistributedArray<T>::adopt(const comm::Communicator& communicator, const Layout& layout,
                                               std::span<T> local) {
  const Index expected = checked(communicator, layout).local_size(communicator.rank());
  if (local.size() != at(expected))
    fail(ErrorCode::invalid_argument,
         fmt::format("{} elements adopted on rank {}, but its part of {} has {}", local.size(),
                     communicator.rank(), layout.describe(), expected));
  return DistributedArray(communicator, layout, nullptr, local.data());
}

template <class T>
DistributedArray<T> DistributedArray<T>::from_full(const comm::Communicator& communicator,
                                                   const Layout& layout, std::span<const T> full) {
  if (full.size() != at(layout.size()))
    fail(ErrorCode::invalid_argument, fmt::format("{} elements for a global array {} of {}", full.size(),
                                                  layout.describe(), layout.size()));
  DistributedArray result(communicator, layout, uninitialised);
  scatter_members(result, full.data());
  return result;
}

template <class T>
DistributedArray<T> DistributedArray<T>::from_local(const comm::Communicator& communicator,
                                                    const Layout& layout, std::vector<T> local) {
  const Index expected = checked(communicator, layout).local_size(communicator.rank());
  if (local.size() != at(expected))
    fail(ErrorCode::invalid_argument,
         fmt::format("{} local elements on rank {}, but its part of {} has {}", local.size(),
                     communicator.rank(), layout.describe(), expected));
  auto owner = std::make_shared<std::vector<T>>(std::move(local));
  T* data = owner->data();
  return DistributedArray(communicator, layout, std::move(owner), data);
}

// Members that are there stay where they are, since programs refer to them, and take their place in the
// memory.
template <class T>
void DistributedArray<T>::make_members() {
  T* begin = data_;
  const std::span<const Layout> layouts = layout_.members();
  members_.reserve(layouts.size());
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (i == members_.size()) {
      members_.push_back(DistributedArray(communicator_, layouts[i], nullptr, begin));
    } else {
      members_[i].data_ = begin;
      members_[i].make_members();
    }
    begin += members_[i].local_size_;
  }
}

template <class T>
DistributedArray<T>& DistributedArray<T>::member(int i) {
  (void)layout_.member(i);
  return members_[at(i)];
}

template <class T>
const DistributedArray<T>& DistributedArray<T>::member(int i) const {
  (void)layout_.member(i);
  return members_[at(i)];
}

template <class T>
void DistributedArray<T>::take_mask(const std::shared_ptr<const Mask>& mask) {
  mask_ = mask;
  for (DistributedArray& member : members_) member.take_mask(mask);
}

template <class T>
void DistributedArray<T>::set_mask(std::span<const int> color_of_rank) {
  if (color_of_rank.size() != at(communicator_.size()))
    fail(ErrorCode::invalid_argument,
         fmt::format("a mask of {} colors for {} ranks", color_of_rank.size(), communicator_.size()));
  if (const auto negative =
          std::find_if(color_of_rank.begin(), color_of_rank.end(), [](int c) { return c < 0; });
      negative != color_of_rank.end())
    fail(ErrorCode::invalid_argument, fmt::format("a mask has the color {}; colors begin at 0", *negative));
  take_mask(std::make_shared<const Mask>(
      Mask{{color_of_rank.begin(), color_of_rank.end()}, *communicator_.split(color_of_rank[at(rank())])}));
}

template <class T>
const comm::Communicator& DistributedArray<T>::reduction_communicator() const {
  return mask_ ? mask_->group : communicator_;
}

template <class T>
std::span<const int> DistributedArray<T>::mask() const {
  return mask_ ? std::span(mask_->color_of_rank) : std::span<const int>();
}

template <class T>
std::vector<T> DistributedArray<T>::to_full() const {
  std::vector<T> full(at(size()));
  gather_members<T>(*this, full, -1);
  return full;
}

template <class T>
std::vector<T> DistributedArray<T>::to_full_on(Rank root) const {
  if (root < 0 || root >= communicator_.size())
    fail(ErrorCode::invalid_argument, fmt::format("root {} of {} ranks", root, communicator_.size()));
  std::vector<T> full(root == rank() ? at(size()) : 0);
  gather_members<T>(*this, full, root);
  return full;
}

template <class T>
DistributedArray<T> empty_like(const DistributedArray<T>& x) {
  DistributedArray<T> result(x.communicator(), x.layout(), uninitialised);
  result.share_mask(x);
  return result;
}

template <class T>
DistributedArray<T> zeros_like(const DistributedArray<T>& x) {
  DistributedArray<T> result = empty_like(x);
  result.fill(T(0));
  return result;
}

template <class T>
DistributedArray<T> stack(std::span<const DistributedArray<T>* const> members) {
  std::vector<Layout> layouts;
  for (const DistributedArray<T>* member : members) layouts.push_back(member->layout());
  const Layout layout = Layout::stack(std::move(layouts));
  DistributedArray<T> result(members.front()->communicator(), layout, uninitialised);
  result.share_mask(*members.front());
  for (std::size_t i = 0; i < members.size(); ++i) result.member(static_cast<int>(i)) = *members[i];
  return result;
}

#define SHOAL_ARRAY_OF(T)                                              \
  template class DistributedArray<T>;                                  \
  template DistributedArray<T> empty_like(const DistributedArray<T>&); \
  template DistributedArray<T> zeros_like(const DistributedArray<T>&); \
  template DistributedArray<T> stack(std::span<const DistributedArray<T>* const>);
SHOAL_ARRAY_OF(float)
SHOAL_ARRAY_OF(double)
SHOAL_ARRAY_OF(std::complex<float>)
SHOAL_ARRAY_OF(std::complex<double>)
#undef SHOAL_ARRAY_OF

}  // namespace shoal::array
