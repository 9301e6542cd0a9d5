// SPDX-License-Identifier: Apache-2.0
#include "linop/stencil_operator.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "linop/instantiate.h"
#include "shoal/array/ghost_cells.h"

namespace shoal::linop {
namespace {

// Outputs from this size on would push out of the caches what is read next.
constexpr Index streaming_bytes = Index{4} << 20;

// Real numbers in an element.
template <class T>
constexpr Index reals_each = is_complex<T> ? 2 : 1;

/// Carries what a sweep tells to where elements are counted within the operator's arrays.
template <class T>
class Carrier final : public SweepVisitor<Real<T>> {
 public:
  Carrier(const OnTheWay<T>& way, const T* in, const T* out, const SweepMemory<Real<T>>& memory)
      : way_(way),
        in_(reinterpret_cast<const Real<T>*>(in)),
        out_(reinterpret_cast<const Real<T>*>(out)),
        memory_(memory) {}
  void before_input(std::size_t input, Index first, Index count) override {
    if (way_.in) way_.in(elements(memory_.inputs[input] - in_ + first), elements(count));
  }
  void after_output(std::size_t output, Index first, Index count, Real<T>* reals) override {
    if (way_.out)
      way_.out(elements(memory_.outputs[output] - out_ + first), elements(count),
               reinterpret_cast<T*>(reals));
  }

 private:
  static std::size_t elements(Index reals) { return static_cast<std::size_t>(reals / reals_each<T>); }

  const OnTheWay<T>& way_;
  const Real<T>*in_, *out_;
  const SweepMemory<Real<T>>& memory_;
};

/// One direction of an operator: the sweep over the rank's part, and the planes that it needs of others.
template <class T>
class DistributedSweep {
 public:
  DistributedSweep(const comm::Communicator& communicator, const Layout& layout,
                   const std::vector<StencilTerm>& terms) {
    const array::Block part = layout.block(communicator.rank());
    const Index size = layout.local_size(communicator.rank());
    std::vector<PlaneWidths> widths;
    std::size_t inputs = 0, outputs = 0;
    for (const StencilTerm& term : terms) {
      const Index before = term.band.reach_before(), after = term.band.reach_after();
      const bool split = layout.grid()[static_cast<std::size_t>(term.axis)] > 1;
      if (split && before + after > 0) {
        planes_.emplace_back(std::in_place, communicator, layout, term.axis, before, after);
        note_sent(part, term.axis, before, after);
      } else {
        planes_.emplace_back();
      }
      const std::optional<array::GhostPlanes<T>>& planes = planes_.back();
      widths.push_back(planes ? PlaneWidths{planes->before_width(), planes->after_width()} : PlaneWidths{});
      input_of_term_.push_back(term.input);
      inputs = std::max(inputs, term.input + 1);
      outputs = std::max(outputs, term.output + 1);
    }
    large_ = size * static_cast<Index>(sizeof(T)) * static_cast<Index>(outputs) >= streaming_bytes;
    sweep_.emplace(part, reals_each<T>, terms, std::move(widths), large_);
    memory_.inputs.resize(inputs);
    memory_.outputs.resize(outputs);
    memory_.planes.resize(terms.size());
  }

  // The arrays: input(i) and output(o).
  template <class Input, class Output>
  void run(const Input& input, const Output& output) {
    find_memory(input, output);
    start_planes(input);
    sweep();
  }

  // The same with something done on the way; `in` and `out` are all elements of the inputs and the outputs.
  template <class Input, class Output>
  void run(const Input& input, const Output& output, std::span<const T> in, std::span<T> out,
           const OnTheWay<T>& way) {
    if (!large_) {  // all of it is in the caches anyway
      if (way.in) way.in(0, in.size());
      run(input, output);
      if (way.out) way.out(0, out.size(), out.data());
      return;
    }
    find_memory(input, output);
    Carrier<T> carrier(way, in.data(), out.data(), memory_);
    memory_.visitor = &carrier;
    sweep_->begin(memory_, head_, tail_);
    start_planes(input);
    sweep();
    sweep_->end(memory_);
    memory_.visitor = nullptr;
  }

 private:
  // Planes of inputs that other ranks are sent lie in the first head_ and the last tail_ reals.
  void note_sent(const array::Block& part, int axis, Index before, Index after) {
    const auto at = part.extent.begin() + axis;
    const Index plane = std::accumulate(at + 1, part.extent.end(), reals_each<T>, std::multiplies<>());
    const Index size = std::accumulate(part.extent.begin(), at + 1, plane, std::multiplies<>());
    const bool leads = plane * *at == size;  // else they lie all over the part
    head_ = std::max(head_, leads ? std::min(after * plane, size) : size);
    tail_ = std::max(tail_, leads ? std::min(before * plane, size) : size);
  }

  template <class Input, class Output>
  void find_memory(const Input& input, const Output& output) {
    memory_.visitor = nullptr;
    for (std::size_t i = 0; i < memory_.inputs.size(); ++i) memory_.inputs[i] = reals<T>(input(i).local());
    for (std::size_t o = 0; o < memory_.outputs.size(); ++o) memory_.outputs[o] = reals<T>(output(o).local());
  }

  template <class Input>
  void start_planes(const Input& input) {
    for (std::size_t t = 0; t < planes_.size(); ++t)
      if (planes_[t]) planes_[t]->start(input(input_of_term_[t]));
  }

  // What needs no planes while they travel, then the rest.
  void sweep() {
    sweep_->run(sweep_->inside(), memory_);
    for (std::size_t t = 0; t < planes_.size(); ++t)
      if (planes_[t]) {
        planes_[t]->finish();
        memory_.planes[t] = {reals<T>(planes_[t]->before()), reals<T>(planes_[t]->after())};
      }
    for (const SweepBox& box : sweep_->borders()) sweep_->run(box, memory_);
  }

  std::vector<std::optional<array::GhostPlanes<T>>> planes_;  // of each term
  std::vector<std::size_t> input_of_term_;
  std::optional<StencilSweep<Real<T>>> sweep_;
  SweepMemory<Real<T>> memory_;
  Index head_ = 0, tail_ = 0;  // in reals
  bool large_ = false;         // the outputs do not stay in the caches
};

template <class T>
class StencilOperator {
 public:
  using domain_type = T;
  using range_type = T;
  StencilOperator(const comm::Communicator& communicator, const Layout& domain, const Layout& range,
                  const std::vector<StencilTerm>& terms)
      : communicator_(communicator),
        domain_(domain),
        range_(range),
        forward_(communicator, domain, terms),
        adjoint_(communicator, domain, transposed(terms)) {}

  const comm::Communicator& communicator() const { return communicator_; }
  const Layout& domain() const { return domain_; }
  const Layout& range() const { return range_; }

  void apply(const DistributedArray<T>& x, DistributedArray<T>& y) const {
    forward_.run(whole(x), members(y));
  }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    adjoint_.run(members(y), whole(x));
  }
  void apply(const DistributedArray<T>& x, DistributedArray<T>& y, const OnTheWay<T>& way) const {
    forward_.run(whole(x), members(y), x.local(), y.local(), way);
  }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x, const OnTheWay<T>& way) const {
    adjoint_.run(members(y), whole(x), y.local(), x.local(), way);
  }

 private:
  template <class Array>
  static auto whole(Array& x) {
    return [&x](std::size_t) -> Array& { return x; };
  }
  template <class Array>
  auto members(Array& y) const {
    return [&y, stacked = range_.is_stack()](std::size_t i) -> Array& {
      return stacked ? y.member(static_cast<int>(i)) : y;
    };
  }

  comm::Communicator communicator_;
  Layout domain_, range_;
  mutable DistributedSweep<T> forward_, adjoint_;
};

}  // namespace

template <class T>
AnyOperator<T> stencil_operator(const comm::Communicator& communicator, const Layout& layout,
                                const std::vector<StencilTerm>& terms, bool to_stack) {
  std::size_t outputs = 0;
  for (const StencilTerm& term : terms) outputs = std::max(outputs, term.output + 1);
  const Layout range = to_stack ? Layout::stack(std::vector<Layout>(outputs, layout)) : layout;
  return StencilOperator<T>(communicator, layout, range, terms);
}

#define SHOAL_INSTANTIATE(T)                                                         \
  template AnyOperator<T> stencil_operator(const comm::Communicator&, const Layout&, \
                                           const std::vector<StencilTerm>&, bool);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop
