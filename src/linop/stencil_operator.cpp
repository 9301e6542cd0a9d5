// SPDX-License-Identifier: Apache-2.0
#include "linop/stencil_operator.h"

#include <algorithm>
#include <optional>

#include "linop/instantiate.h"
#include "shoal/array/ghost_cells.h"

namespace shoal::linop {
namespace {

// Outputs from this size on would push out of the caches what is read next.
constexpr Index streaming_bytes = Index{4} << 20;

template <class T>
const Real<T>* reals(std::span<const T> elements) {
  return reinterpret_cast<const Real<T>*>(elements.data());
}
template <class T>
Real<T>* reals(std::span<T> elements) {
  return reinterpret_cast<Real<T>*>(elements.data());
}

/// One direction of an operator: the sweep over the rank's part, and the planes that it needs of others.
template <class T>
class DistributedSweep {
 public:
  DistributedSweep(const comm::Communicator& communicator, const Layout& layout,
                   const std::vector<StencilTerm>& terms) {
    std::vector<PlaneWidths> widths;
    std::size_t inputs = 0, outputs = 0;
    for (const StencilTerm& term : terms) {
      const Index before = term.band.reach_before(), after = term.band.reach_after();
      const bool split = layout.grid()[static_cast<std::size_t>(term.axis)] > 1;
      if (split && before + after > 0)
        planes_.emplace_back(std::in_place, communicator, layout, term.axis, before, after);
      else
        planes_.emplace_back();
      const std::optional<array::GhostPlanes<T>>& planes = planes_.back();
      widths.push_back(planes ? PlaneWidths{planes->before_width(), planes->after_width()} : PlaneWidths{});
      input_of_term_.push_back(term.input);
      inputs = std::max(inputs, term.input + 1);
      outputs = std::max(outputs, term.output + 1);
    }
    const Index bytes =
        layout.local_size(communicator.rank()) * static_cast<Index>(sizeof(T)) * static_cast<Index>(outputs);
    sweep_.emplace(layout.block(communicator.rank()), is_complex<T> ? 2 : 1, terms, std::move(widths),
                   bytes >= streaming_bytes);
    memory_.inputs.resize(inputs);
    memory_.outputs.resize(outputs);
    memory_.planes.resize(terms.size());
  }

  // The arrays: input(i) and output(o).
  template <class Input, class Output>
  void run(const Input& input, const Output& output) {
    for (std::size_t i = 0; i < memory_.inputs.size(); ++i) memory_.inputs[i] = reals<T>(input(i).local());
    for (std::size_t o = 0; o < memory_.outputs.size(); ++o) memory_.outputs[o] = reals<T>(output(o).local());
    for (std::size_t t = 0; t < planes_.size(); ++t)
      if (planes_[t]) planes_[t]->start(input(input_of_term_[t]));
    sweep_->run(sweep_->inside(), memory_);
    for (std::size_t t = 0; t < planes_.size(); ++t)
      if (planes_[t]) {
        planes_[t]->finish();
        memory_.planes[t] = {reals<T>(planes_[t]->before()), reals<T>(planes_[t]->after())};
      }
    for (const SweepBox& box : sweep_->borders()) sweep_->run(box, memory_);
  }

 private:
  std::vector<std::optional<array::GhostPlanes<T>>> planes_;  // of each term
  std::vector<std::size_t> input_of_term_;
  std::optional<StencilSweep<Real<T>>> sweep_;
  SweepMemory<Real<T>> memory_;
};

std::vector<StencilTerm> transposed(const std::vector<StencilTerm>& terms) {
  std::vector<StencilTerm> swapped;
  for (const StencilTerm& term : terms)
    swapped.push_back(
        {.output = term.input, .input = term.output, .axis = term.axis, .band = term.band.transposed()});
  return swapped;
}

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
    forward_.run([&](std::size_t) -> const DistributedArray<T>& { return x; },
                 [&](std::size_t i) -> DistributedArray<T>& { return member(y, i); });
  }
  void apply_adjoint(const DistributedArray<T>& y, DistributedArray<T>& x) const {
    adjoint_.run([&](std::size_t i) -> const DistributedArray<T>& { return member(y, i); },
                 [&](std::size_t) -> DistributedArray<T>& { return x; });
  }

 private:
  template <class Array>
  Array& member(Array& y, std::size_t i) const {
    return range_.is_stack() ? y.member(static_cast<int>(i)) : y;
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
