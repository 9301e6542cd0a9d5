// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "linop/fft_layouts.h"
#include "linop/fft_steps.h"
#include "linop/slab_steps.h"
#include "shoal/base/error.h"
#include "shoal/linop/fft.h"

namespace shoal::linop {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

struct AxisPlan {
  int axis = 0;
  Index extent = 0;  // of the domain
  Index length = 0;  // of the transform
  Index bins = 0;    // of the spectrum, which are transformed to
  Index kept = 0;    // of them in the range
  double sampling = 1;
  bool shift_before = false, shift_after = false;
};

template <class List>
auto one_of(const List& list, std::size_t i, std::size_t count, const char* what) {
  if (list.size() != 1 && list.size() != count)
    fail(ErrorCode::invalid_argument,
         fmt::format("FFT: {} values of {} for {} axes; give 1 or {}", list.size(), what, count, count));
  return list[list.size() == 1 ? 0 : i];
}

std::vector<int> normalised_axes(const Layout& domain, const std::vector<int>& given) {
  std::vector<int> axes;
  if (given.empty())
    for (int axis = 0; axis < domain.axes(); ++axis) axes.push_back(axis);
  for (const int axis : given) {
    const int place = axis < 0 ? axis + domain.axes() : axis;
    if (place < 0 || place >= domain.axes() || std::ranges::find(axes, place) != axes.end())
      fail(ErrorCode::invalid_argument,
           fmt::format("FFT: axis {} of {} is not there or was given twice", axis, domain.describe()));
    axes.push_back(place);
  }
  if (axes.empty()) fail(ErrorCode::invalid_argument, "FFT of an array without axes");
  return axes;
}

std::vector<AxisPlan> plan_axes(const Layout& domain, const FftOptions& options, bool halved) {
  const std::vector<int> axes = normalised_axes(domain, options.axes);
  std::vector<AxisPlan> plans;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    AxisPlan plan{.axis = axes[i], .extent = domain.shape()[at(axes[i])]};
    const bool last = halved && i + 1 == axes.size();
    plan.length = options.lengths.empty() ? plan.extent : one_of(options.lengths, i, axes.size(), "length");
    if (plan.length < 1)
      fail(ErrorCode::invalid_argument, fmt::format("FFT of length {} along axis {} of {}; use 1 or more",
                                                    plan.length, plan.axis, domain.describe()));
    plan.bins = plan.kept = last ? plan.length / 2 + 1 : plan.length;
    if (last && options.bins != 0) {
      if (options.bins < 0 || options.bins > plan.bins)
        fail(ErrorCode::invalid_argument,
             fmt::format("FFT: {} bins of the {} that length {} has", options.bins, plan.bins, plan.length));
      plan.kept = options.bins;
    }
    plan.sampling = one_of(options.sampling, i, axes.size(), "sampling");
    plan.shift_before = one_of(options.shift_before, i, axes.size(), "shift_before");
    plan.shift_after = one_of(options.shift_after, i, axes.size(), "shift_after");
    if (last && plan.shift_after && options.shift_after.size() > 1)
      fail(ErrorCode::invalid_argument,
           fmt::format("FFT: axis {} has half of its spectrum, which cannot be shifted", plan.axis));
    if (last) plan.shift_after = false;
    plans.push_back(plan);
  }
  if (!halved && options.bins != 0)
    fail(ErrorCode::invalid_argument, "FFT: bins are of real transforms; leave them 0 for complex ones");
  return plans;
}

}  // namespace

template <class D>
class Fft<D>::Implementation {
 public:
  using R = Real<D>;
  using C = std::complex<R>;
  static constexpr bool halved = !is_complex<D>;

  Implementation(const comm::Communicator& communicator, const Layout& domain, const FftOptions& options)
      : communicator_(communicator),
        domain_(domain),
        range_(domain),
        axes_(plan_axes(domain, options, halved)),
        scale_(options.scale) {
    if (domain.ranks() != communicator.size())
      fail(ErrorCode::invalid_argument,
           fmt::format("FFT of {} on a communicator of {} ranks", domain.describe(), communicator.size()));
    std::vector<FftAxisExtents> extents;
    for (const AxisPlan& a : axes_) extents.push_back({a.axis, a.extent, a.kept});
    const FftRoute route =
        plan_route(domain, extents, halved, options.range_layout, options.range == FftRange::transposed);
    range_ = route.range;
    check_range(options);
    if (!add_line() && !add_slabs(route)) add_route(route);
    allocate();
  }

  const comm::Communicator& communicator() const { return communicator_; }
  const Layout& domain() const { return domain_; }
  const Layout& range() const { return range_; }
  const std::vector<AxisPlan>& axes() const { return axes_; }
  int redistributions() const {
    return static_cast<int>(
        std::ranges::count_if(steps_, [](const auto& step) { return step->redistributes(); }));
  }

  void apply(std::span<const D> x, std::span<C> y) const {
    const R f = static_cast<R>(factor());
    const SpectrumScale<R> scale{f, halved ? f * half_weight : f};
    const void* from = x.data();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      void* to = i + 1 == steps_.size() ? static_cast<void*>(y.data()) : buffer(i);
      steps_[i]->forward(from, to, scale);
      from = to;
    }
  }
  // With `factor` on top of that of the forward transform's.
  void apply_adjoint(std::span<const C> y, std::span<D> x, double more = 1) const {
    const R f = static_cast<R>(factor() * more);
    const SpectrumScale<R> scale{f, !halved ? f : line_ ? f * half_weight : f / half_weight};
    const void* from = y.data();
    for (std::size_t i = steps_.size(); i-- > 0;) {
      void* to = i == 0 ? static_cast<void*>(x.data()) : buffer(i);
      steps_[i]->backward(from, to, scale);
      from = to;
    }
  }
  double inverse_factor() const {
    for (const AxisPlan& a : axes_)
      if (a.length < a.extent || a.kept < a.bins)
        fail(ErrorCode::unsupported, fmt::format("FFT: along axis {} {} of {} samples and {} of {} bins are "
                                                 "kept, which has no inverse",
                                                 a.axis, a.length, a.extent, a.kept, a.bins));
    return 1 / (factor() * factor() * size());
  }

 private:
  static constexpr R half_weight = static_cast<R>(1.41421356237309504880);

  double size() const {
    double n = 1;
    for (const AxisPlan& a : axes_) n *= static_cast<double>(a.length);
    return n;
  }
  double factor() const {
    switch (scale_) {
      case FftScale::none: return 1;
      case FftScale::one_over_n: return 1 / size();
      case FftScale::orthonormal: return 1 / std::sqrt(size());
    }
    return 1;
  }

  void check_range(const FftOptions& options) const {
    Shape shape = domain_.shape();
    for (const AxisPlan& a : axes_) shape[at(a.axis)] = a.kept;
    if (options.range_layout && (range_.shape() != shape || range_.ranks() != domain_.ranks()))
      fail(ErrorCode::invalid_argument,
           fmt::format("FFT of {}: the range is {} over {} ranks, but was given as {}", domain_.describe(),
                       array::to_string(shape), domain_.ranks(), range_.describe()));
  }

  // One split axis, by rows and columns.
  bool add_line() {
    const AxisPlan& a = axes_.front();
    if (domain_.axes() != 1 || domain_.ranks() == 1 || domain_.is_replicated() || range_.is_replicated() ||
        a.length != a.extent || a.kept != a.bins)
      return false;
    if ((a.shift_before || a.shift_after) && a.length % 2 != 0) return false;
    const std::optional<LineFactors> factors = line_factors(domain_, range_);
    if (!factors) return false;
    line_ = true;
    steps_ = line_steps<D>(communicator_, domain_, range_, *factors, a.shift_before, a.shift_after);
    return true;
  }

  // Slabs along the first axis, by way of slabs along the second, where the ranks share a host.
  bool add_slabs(const FftRoute& route) {
    if (domain_.ranks() == 1 || route.stages.size() != 2) return false;
    const FftStage &planes = route.stages[0], &columns = route.stages[1];
    const auto is_slab = [](const Layout& layout, int axis) { return layout.split_axis() == axis; };
    const bool back = is_slab(range_, 0);
    if (!(planes.before == domain_) || !is_slab(domain_, 0) || !is_slab(columns.before, 1) ||
        columns.axes.size() != 1 || axes_[columns.axes[0]].axis != 0 || (!back && !(columns.after == range_)))
      return false;
    for (const AxisPlan& a : axes_)
      if (a.length != a.extent || a.kept != a.bins || a.shift_before || a.shift_after) return false;
    const auto parts = [](const Layout& layout, int axis) {
      return std::vector<Index>(layout.extents(axis).begin(), layout.extents(axis).end());
    };
    SlabShape slab{parts(domain_, 0), parts(columns.before, 1), 1, communicator_.rank()};
    if (back && parts(range_, 0) != slab.rows) return false;
    const Shape& shape = columns.before.shape();
    for (std::size_t a = 2; a < shape.size(); ++a) slab.rest *= shape[a];
    const auto memory = SlabMemory<C>::make(communicator_, largest_part(slab));
    if (!memory) return false;
    const auto pipe = back ? TilePipe<C>::make(communicator_, slab_slot<R>(slab)) : nullptr;
    if (back && !pipe) return false;
    std::vector<int> axes;
    for (const std::size_t i : planes.axes) axes.push_back(axes_[i].axis - 1);
    const Shape plane(domain_.shape().begin() + 1, domain_.shape().end());
    steps_.push_back(planes_step<D>(memory, slab, plane, axes, halved ? axes_.back().axis - 1 : -1));
    steps_.push_back(back ? columns_step<R>(memory, pipe, slab) : own_columns_step<R>(memory, slab));
    return true;
  }

  void add_route(const FftRoute& route) {
    bool first = true;
    const Layout* current = &domain_;
    for (const FftStage& stage : route.stages) {
      if (halved && first) {
        move<D>(*current, stage.before);
        add_stage<D>(stage, true);
      } else {
        move<C>(*current, stage.before);
        add_stage<C>(stage, first);
      }
      first = false;
      current = &stage.after;
    }
    move<C>(*current, range_);
  }

  template <class T>
  void move(const Layout& from, const Layout& to) {
    if (from == to) return;
    steps_.push_back(std::make_unique<RedistributionStep<T>>(communicator_, from, to));
  }

  template <class T>
  void add_stage(const FftStage& stage, bool scales) {
    const Shape before = stage.before.block(communicator_.rank()).extent;
    std::vector<AxisMap> there, back;
    Shape spectrum = before;
    std::vector<int> axes;
    int halved_axis = -1;
    for (const Index extent : before) {
      there.push_back(AxisMap::identity(extent, extent));
      back.push_back(there.back());
    }
    for (const std::size_t i : stage.axes) {
      const AxisPlan& a = axes_[i];
      axes.push_back(a.axis);
      if (!is_complex<T> && i + 1 == axes_.size()) halved_axis = a.axis;
      // ifftshift: element n/2 becomes the first.
      there[at(a.axis)] = AxisMap::rotation(
          a.extent, a.shift_before ? (a.extent + 1) / 2 % std::max<Index>(a.extent, 1) : 0, a.length);
      back[at(a.axis)] = AxisMap::rotation(a.bins, a.shift_after ? a.bins / 2 : 0, a.kept);
      spectrum[at(a.axis)] = a.bins;
    }
    const BlockMap map_there(there), map_back(back);
    if (!map_there.is_identity()) steps_.push_back(std::make_unique<MapStep<T>>(map_there));
    steps_.push_back(
        std::make_unique<TransformStep<T>>(map_there.to_shape(), spectrum, axes, halved_axis, scales));
    if (!map_back.is_identity()) steps_.push_back(std::make_unique<MapStep<C>>(map_back));
  }

  // Memory between the steps: two pieces that take turns. Before step i lies buffer(i) or, forwards, after
  // it.
  void allocate() {
    Index bytes = 0;
    for (std::size_t i = 0; i + 1 < steps_.size(); ++i) bytes = std::max(bytes, steps_[i]->out_bytes());
    if (steps_.size() < 2) return;
    const Index elements = bytes / static_cast<Index>(sizeof(C)) + 1;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, steps_.size() - 1); ++i)
      buffers_.emplace_back(communicator_, Layout::replicated({elements}, communicator_.size()),
                            array::uninitialised);
  }
  void* buffer(std::size_t i) const { return buffers_[i % buffers_.size()].local().data(); }

  comm::Communicator communicator_;
  Layout domain_, range_;
  std::vector<AxisPlan> axes_;
  FftScale scale_;
  bool line_ = false;
  FftSteps<R> steps_;
  mutable std::vector<DistributedArray<C>> buffers_;
};

template <class D>
Fft<D>::Fft(const comm::Communicator& communicator, const Layout& domain, FftOptions options)
    : self_(std::make_shared<const Implementation>(communicator, domain, options)) {}

template <class D>
const comm::Communicator& Fft<D>::communicator() const {
  return self_->communicator();
}
template <class D>
const Layout& Fft<D>::domain() const {
  return self_->domain();
}
template <class D>
const Layout& Fft<D>::range() const {
  return self_->range();
}
template <class D>
int Fft<D>::redistributions() const {
  return self_->redistributions();
}

template <class D>
void Fft<D>::apply(const DistributedArray<D>& x, DistributedArray<range_type>& y) const {
  require_equal(x.layout(), domain(), "FFT: input");
  require_equal(y.layout(), range(), "FFT: output");
  self_->apply(x.local(), y.local());
}
template <class D>
void Fft<D>::apply_adjoint(const DistributedArray<range_type>& y, DistributedArray<D>& x) const {
  require_equal(y.layout(), range(), "FFT: input of the adjoint");
  require_equal(x.layout(), domain(), "FFT: output of the adjoint");
  self_->apply_adjoint(y.local(), x.local());
}
template <class D>
void Fft<D>::apply_inverse(const DistributedArray<range_type>& y, DistributedArray<D>& x) const {
  require_equal(y.layout(), range(), "FFT: input of the inverse");
  require_equal(x.layout(), domain(), "FFT: output of the inverse");
  self_->apply_adjoint(y.local(), x.local(), self_->inverse_factor());
}

template <class D>
std::vector<double> Fft<D>::frequencies(int i) const {
  const auto& axes = self_->axes();
  if (i < 0 || at(i) >= axes.size())
    fail(ErrorCode::invalid_argument, fmt::format("FFT: frequencies of axis {} of {}", i, axes.size()));
  const AxisPlan& a = axes[at(i)];
  const bool half = !is_complex<D> && at(i) + 1 == axes.size();
  std::vector<double> result;
  for (Index k = 0; k < a.kept; ++k) {
    const Index bin = a.shift_after ? k - a.length / 2 : half || 2 * k < a.length ? k : k - a.length;
    result.push_back(static_cast<double>(bin) / (static_cast<double>(a.length) * a.sampling));
  }
  return result;
}

template class Fft<float>;
template class Fft<double>;
template class Fft<std::complex<float>>;
template class Fft<std::complex<double>>;

}  // namespace shoal::linop
