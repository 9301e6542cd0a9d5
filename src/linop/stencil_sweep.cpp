// SPDX-License-Identifier: Apache-2.0
#include "linop/stencil_sweep.h"

#include <algorithm>

namespace shoal::linop {
namespace {

// Below this many bytes a plane of the last axis is not worth a visit of its own: then all waits for the
// planes instead of being mended after they have come.
constexpr Index least_plane_bytes = 4096;

// Elements longer than the first are cut into pieces of the second size, and the sweep goes down one column
// of pieces after the other: the rows that a difference of five points reads stay in the first-level cache.
constexpr Index long_element_bytes = 8 << 10;
constexpr Index piece_bytes = 4 << 10;

// Of planes across the first axis larger than this, three do not stay in the second-level cache; rows are
// then taken in blocks of the second size.
constexpr Index large_plane_bytes = 512 << 10;
constexpr Index block_bytes = 128 << 10;

// From so many reals on combine() works by vectors.
constexpr Index least_vector = 8;

// How much of a long row is computed before it is written.
constexpr Index write_bytes = 4096;

// How far ahead of its use memory is fetched.
constexpr Index fetch_bytes = 2048;

// How much of an input a visitor is told of at once, at least.
constexpr Index visit_bytes = 8192;

}  // namespace

std::vector<StencilTerm> transposed(const std::vector<StencilTerm>& terms) {
  std::vector<StencilTerm> swapped;
  for (const StencilTerm& term : terms)
    swapped.push_back(
        {.output = term.input, .input = term.output, .axis = term.axis, .band = term.band.transposed()});
  return swapped;
}

template <class R>
StencilSweep<R>::StencilSweep(const array::Block& part, Index reals_per_element,
                              std::vector<StencilTerm> terms, std::vector<PlaneWidths> widths,
                              bool past_caches)
    : past_caches_(past_caches) {
  collapse(part, reals_per_element, terms);
  std::size_t outputs = 0, most_taps = 1;
  for (const StencilTerm& term : terms) {
    outputs = std::max(outputs, term.output + 1);
    most_taps += static_cast<std::size_t>(2 * (term.band.reach_before() + term.band.reach_after()) + 1);
  }
  sources_.resize(most_taps);
  outer_sources_.resize(most_taps);
  coefficients_.resize(most_taps);
  steps_.resize(most_taps);
  outputs_.resize(outputs);
  std::vector<std::vector<std::size_t>> inputs(outputs);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::size_t dimension = dimension_[static_cast<std::size_t>(terms[i].axis)];
    const Index first = part.begin[static_cast<std::size_t>(terms[i].axis)];
    Term term{terms[i].input, i, dimension, first, terms[i].band, widths[i], 0, 0};
    find_alike(term);
    Output& output = outputs_[terms[i].output];
    inputs[terms[i].output].push_back(terms[i].input);
    lead_.resize(std::max(lead_.size(), terms[i].input + 1), 0);
    Index& lead = lead_[terms[i].input];
    lead = std::max(lead, terms[i].band.reach_after() * stride_[dimension]);
    if (dimension + 1 == extent_.size())
      output.along = std::move(term);
    else
      output.outer.push_back(std::move(term));
  }
  for (std::size_t o = 0; o < outputs; ++o) {
    Output& output = outputs_[o];
    output.one_input =
        std::ranges::all_of(inputs[o], [&](std::size_t input) { return input == inputs[o][0]; });
    output.segments = output.along ? make_segments(*output.along, output.one_input)
                                   : std::vector<Segment>{{0, extent_.back(), 0, {}}};
    for (std::size_t i = 1; i < output.segments.size(); ++i) {
      const auto length = [&](std::size_t k) { return output.segments[k].end - output.segments[k].begin; };
      if (length(i) > length(output.longest)) output.longest = i;
    }
    if (past_caches) writers_.emplace_back();
  }
  ahead_.resize(lead_.size());
  split_inside_from_borders(terms);
}

template <class R>
void StencilSweep<R>::collapse(const array::Block& part, Index reals_per_element,
                               const std::vector<StencilTerm>& terms) {
  const std::size_t axes = part.extent.size();
  std::vector<bool> has_term(axes, false);
  std::size_t last = 0;
  for (const StencilTerm& term : terms) {
    has_term[static_cast<std::size_t>(term.axis)] = true;
    last = std::max(last, static_cast<std::size_t>(term.axis));
  }
  dimension_.resize(axes);
  for (std::size_t axis = 0; axis <= last; ++axis) {
    const bool joins = axis > 0 && !has_term[axis] && !has_term[axis - 1];
    if (joins)
      extent_.back() *= part.extent[axis];
    else
      extent_.push_back(part.extent[axis]);
    dimension_[axis] = extent_.size() - 1;
  }
  unit_ = reals_per_element;
  for (std::size_t axis = last + 1; axis < axes; ++axis) unit_ *= part.extent[axis];
  stride_.resize(extent_.size());
  Index stride = unit_;
  for (std::size_t d = extent_.size(); d-- > 0;) {
    stride_[d] = stride;
    stride *= extent_[d];
  }
  size_ = stride;
  row_length_ = extent_.back() * unit_;
}

template <class R>
void StencilSweep<R>::find_alike(Term& term) const {
  const Band& band = term.band;
  const Index extent = extent_[term.dimension];
  term.alike_begin =
      std::clamp<Index>(std::max(band.inner_begin() - term.first, band.reach_before()), 0, extent);
  term.alike_end = std::clamp<Index>(std::min(band.inner_end() - term.first, extent - band.reach_after()),
                                     term.alike_begin, extent);
}

// The taps of a local row; with one input the middle one goes to `center`.
template <class R>
std::vector<typename StencilSweep<R>::Source> StencilSweep<R>::sources_of(const Term& term, Index row,
                                                                          bool one_input,
                                                                          double& center) const {
  std::vector<Source> sources;
  const Index extent = extent_[term.dimension];
  for (const Tap& tap : term.band.row(term.first + row)) {
    const Index at = row + tap.offset;
    const R coefficient = static_cast<R>(tap.coefficient);
    if (tap.offset == 0 && one_input)
      center += tap.coefficient;
    else if (at < 0)
      sources.push_back({Where::before, term.widths.before + at, coefficient});
    else if (at >= extent)
      sources.push_back({Where::after, at - extent, coefficient});
    else
      sources.push_back({Where::own, tap.offset, coefficient});
  }
  return sources;
}

template <class R>
std::vector<typename StencilSweep<R>::Segment> StencilSweep<R>::make_segments(const Term& term,
                                                                              bool one_input) const {
  const Index begin = term.alike_begin, end = term.alike_end, extent = extent_[term.dimension];
  std::vector<Segment> segments;
  const auto append = [&](Index from, Index to) {
    Segment segment{from, to, 0, {}};
    segment.sources = sources_of(term, from, one_input, segment.center);
    segments.push_back(std::move(segment));
  };
  for (Index row = 0; row < begin; ++row) append(row, row + 1);
  if (begin < end) append(begin, end);
  for (Index row = end; row < extent; ++row) append(row, row + 1);
  return segments;
}

template <class R>
void StencilSweep<R>::split_inside_from_borders(std::span<const StencilTerm> terms) {
  const std::size_t dimensions = extent_.size();
  inside_ = {std::vector<Index>(dimensions, 0), extent_};
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    std::vector<const Term*> all;
    for (const Term& term : outputs_[o].outer) all.push_back(&term);
    if (outputs_[o].along) all.push_back(&*outputs_[o].along);
    for (const Term* term : all) {
      Index& begin = inside_.begin[term->dimension];
      Index& end = inside_.end[term->dimension];
      // Rows beyond the reach of all taps cannot need planes; of the others each is asked.
      const Index extent = extent_[term->dimension];
      const auto needs = [&](Index row, Where where) {
        double center = 0;
        return std::ranges::any_of(sources_of(*term, row, true, center),
                                   [where](const Source& source) { return source.where == where; });
      };
      for (Index row = 0; row < std::min(extent, terms[term->planes].band.reach_before()); ++row)
        if (needs(row, Where::before)) begin = std::max(begin, row + 1);
      for (Index row = std::max<Index>(0, extent - terms[term->planes].band.reach_after()); row < extent;
           ++row)
        if (needs(row, Where::after)) end = std::min(end, row);
      if (term->dimension + 1 == dimensions && end - begin < extent &&
          unit_ * static_cast<Index>(sizeof(R)) < least_plane_bytes)
        begin = end = 0;
      end = std::max(begin, end);
    }
  }
  for (std::size_t d = 0; d < dimensions; ++d) {
    SweepBox box{inside_.begin, inside_.end};
    for (std::size_t behind = d + 1; behind < dimensions; ++behind) {
      box.begin[behind] = 0;
      box.end[behind] = extent_[behind];
    }
    box.begin[d] = 0;
    box.end[d] = inside_.begin[d];
    if (box.end[d] > box.begin[d]) borders_.push_back(box);
    box.begin[d] = inside_.end[d];
    box.end[d] = extent_[d];
    if (box.end[d] > box.begin[d]) borders_.push_back(box);
  }
}

template <class R>
void StencilSweep<R>::run(const SweepBox& box, const SweepMemory<R>& memory) {
  if (size_ == 0) return;
  for (std::size_t d = 0; d < extent_.size(); ++d)
    if (box.begin[d] >= box.end[d]) return;
  const std::size_t last = extent_.size() - 1;
  box_ = box;
  Part part{box.begin[last], box.end[last], 0, unit_};
  const auto reals = [](Index bytes) { return bytes / static_cast<Index>(sizeof(R)); };
  fetch_distance_ = reals(fetch_bytes);
  if (past_caches_ && unit_ > reals(long_element_bytes)) {
    fetch_distance_ = unit_;  // the next piece of the column
    for (; part.first < unit_; part.first = part.last) {
      part.last = std::min(unit_, part.first + reals(piece_bytes));
      run_rows(part, memory);
    }
  } else if (last >= 2 && stride_[0] > reals(large_plane_bytes)) {
    const Index end = box_.end[1], step = std::max<Index>(8, reals(block_bytes) / stride_[1]);
    for (; box_.begin[1] < end; box_.begin[1] = box_.end[1]) {
      box_.end[1] = std::min(end, box_.begin[1] + step);
      run_rows(part, memory);
    }
  } else {
    run_rows(part, memory);
  }
  for (StreamWriter& writer : writers_) writer.flush();
}

template <class R>
void StencilSweep<R>::begin(const SweepMemory<R>& memory, Index head, Index tail) {
  tail_ = std::max(head, size_ - tail);
  visited_.assign(lead_.size(), head);
  for (std::size_t i = 0; i < visited_.size(); ++i) {
    if (head > 0) memory.visitor->before_input(i, 0, head);
    if (tail_ < size_) memory.visitor->before_input(i, tail_, size_ - tail_);
  }
}

template <class R>
void StencilSweep<R>::end(const SweepMemory<R>& memory) {
  visit_inputs(size_, memory);
}

// All that outputs before `end` need, of each input.
template <class R>
void StencilSweep<R>::visit_inputs(Index end, const SweepMemory<R>& memory) {
  for (std::size_t i = 0; i < visited_.size(); ++i) {
    const Index first = visited_[i];
    if (first >= std::min(end + lead_[i], tail_)) continue;
    const Index least = first + visit_bytes / static_cast<Index>(sizeof(R));
    visited_[i] = std::min(std::max(end + lead_[i], least), tail_);
    memory.visitor->before_input(i, first, visited_[i] - first);
  }
}

template <class R>
void StencilSweep<R>::run_rows(const Part& part, const SweepMemory<R>& memory) {
  const std::size_t outer = extent_.size() - 1;
  row_.index.assign(box_.begin.begin(), box_.begin.end() - 1);
  for (bool more = true; more;) {
    row_.offset = 0;
    for (std::size_t d = 0; d < outer; ++d) row_.offset += row_.index[d] * stride_[d];
    row_.number = row_.offset / row_length_;
    row_.alike = rows_alike(part);
    run_row(part, memory);
    more = false;
    for (std::size_t d = outer; d-- > 0 && !more;) {
      row_.index[d] += d + 1 == outer ? row_.alike : 1;
      more = row_.index[d] < box_.end[d];
      if (!more) row_.index[d] = box_.begin[d];
    }
  }
}

// How many rows from this one on may be computed as one: all of their taps are the same, and the sources of
// their longest segments, read from end to end, lie in the inputs.
template <class R>
Index StencilSweep<R>::rows_alike(const Part& part) const {
  if (row_.index.empty()) return 1;
  const std::size_t d = row_.index.size() - 1;
  // The first and the last row of all are left out: what they read may begin before the inputs or end behind.
  const Index left = size_ / row_length_ - 1 - row_.number;
  if (row_.number == 0 || left <= 0) return 1;
  Index rows = std::min({box_.end[d] - row_.index[d], StreamWriter::most / row_length_, left});
  for (const Output& output : outputs_) {
    if (!fits_whole(output, part)) return 1;
    for (const Term& term : output.outer) {
      if (term.dimension != d) continue;
      if (row_.index[d] < term.alike_begin) return 1;
      rows = std::min(rows, term.alike_end - row_.index[d]);
    }
  }
  return std::max<Index>(1, rows);
}

template <class R>
void StencilSweep<R>::run_row(const Part& part, const SweepMemory<R>& memory) {
  const bool whole_elements = part.first == 0 && part.last == unit_;
  if (memory.visitor != nullptr) visit_inputs(row_.offset + row_.alike * row_length_, memory);
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const Output& output = outputs_[o];
    outer_center_ = add_outer(output, memory);
    if (fits_whole(output, part)) {
      write_whole(o, row_.alike, memory);
      continue;
    }
    for (const Segment& segment : output.segments) {
      const Index from = std::max(part.begin, segment.begin), to = std::min(part.end, segment.end);
      // Neighbours whose elements are wanted whole are one range.
      for (Index at = from; at < to; at += whole_elements ? to - from : 1) {
        const Index place = at * unit_ + part.first;
        const Index n = whole_elements ? (to - from) * unit_ : part.last - part.first;
        write(o, row_.offset + place, taps_of(output, segment, place, memory), n, memory);
      }
    }
  }
}

// Whether the row may be computed with the taps of its longest segment from end to end, which then read
// elements of other rows at its ends, where the other segments are mended.
template <class R>
bool StencilSweep<R>::fits_whole(const Output& output, const Part& part) const {
  if (part.begin != 0 || part.end != extent_.back() || part.last - part.first != unit_ ||
      row_length_ > StreamWriter::most)
    return false;
  return std::ranges::all_of(output.segments[output.longest].sources, [&](const Source& source) {
    const Index begin = row_.offset + source.row * unit_;
    return source.where == Where::own && begin >= 0 && begin + row_length_ <= size_;
  });
}

template <class R>
void StencilSweep<R>::write_whole(std::size_t o, Index rows, const SweepMemory<R>& memory) {
  const Output& output = outputs_[o];
  const Index n = rows * row_length_;
  R* to = memory.outputs[o] + row_.offset;
  if (past_caches_) to = writers_[o].reserve(to, n);
  const Taps taps = taps_of(output, output.segments[output.longest], 0, memory);
  combine(to, taps.sources, taps.coefficients, taps.count, n, ahead(o, row_.offset, n, memory));
  for (std::size_t i = 0; i < output.segments.size(); ++i)
    if (i != output.longest) mend(output, output.segments[i], rows, to, memory);
  if (memory.visitor != nullptr) memory.visitor->after_output(o, row_.offset, n, to);
}

// The sums of combine(), with the same bits, of one real in each of `rows` rows: out[row * step] of the reals
// `at` behind the sources. Tap by tap: the loop over rows is the long one.
template <class R>
void StencilSweep<R>::combine_column(R* out, Index step, Index rows, const Taps& taps, Index at) {
  if (taps.count == 0)
    for (Index row = 0; row < rows; ++row) out[row * step] = 0;
  for (std::size_t k = 0; k < taps.count; ++k) {
    const R* source = taps.sources[k] + at;
    const R coefficient = taps.coefficients[k];
    const Index source_step = taps.steps[k];
    if (k == 0)
      for (Index row = 0; row < rows; ++row) out[row * step] = source[row * source_step] * coefficient;
    else
      for (Index row = 0; row < rows; ++row) out[row * step] += source[row * source_step] * coefficient;
  }
}

// The elements of a segment in each of the rows that begin at `to`.
template <class R>
void StencilSweep<R>::mend(const Output& output, const Segment& segment, Index rows, R* to,
                           const SweepMemory<R>& memory) {
  const Index place = segment.begin * unit_, n = (segment.end - segment.begin) * unit_;
  const Taps taps = taps_of(output, segment, place, memory);
  if (n < least_vector) {
    for (Index i = 0; i < n; ++i) combine_column(to + place + i, row_length_, rows, taps, i);
    return;
  }
  for (Index row = 0; row < rows; ++row) {
    combine(to + row * row_length_ + place, taps.sources, taps.coefficients, taps.count, n);
    for (std::size_t k = 0; k < taps.count; ++k) taps.sources[k] += taps.steps[k];
  }
}

// The taps of the terms across the row; returns the middle coefficient, which comes first of all.
template <class R>
double StencilSweep<R>::add_outer(const Output& output, const SweepMemory<R>& memory) {
  double center = 0;
  taps_ = 1;  // the first is kept for the middle
  for (const Term& term : output.outer) {
    const Index at = row_.index[term.dimension], extent = extent_[term.dimension],
                stride = stride_[term.dimension];
    const R* own = memory.inputs[term.input] + row_.offset;
    for (const Tap& tap : term.band.row(term.first + at)) {
      const Index to = at + tap.offset;
      const R coefficient = static_cast<R>(tap.coefficient);
      if (tap.offset == 0 && output.one_input) {
        center += tap.coefficient;
      } else if (to >= 0 && to < extent) {
        add(own + tap.offset * stride, coefficient, row_length_);
      } else {
        // In a buffer of planes the axis has another extent.
        const Index rest = row_.offset % stride, slabs = row_.offset / (stride * extent);
        const Planes<R>& planes = memory.planes[term.planes];
        if (to < 0)
          add(planes.before + (slabs * term.widths.before + term.widths.before + to) * stride + rest,
              coefficient, row_length_);
        else
          add(planes.after + (slabs * term.widths.after + to - extent) * stride + rest, coefficient,
              row_length_);
      }
    }
  }
  outer_taps_ = taps_;
  std::swap(sources_, outer_sources_);
  return center;
}

// All taps for the row's reals from `at` on, which belong to the segment.
template <class R>
typename StencilSweep<R>::Taps StencilSweep<R>::taps_of(const Output& output, const Segment& segment,
                                                        Index at, const SweepMemory<R>& memory) {
  taps_ = outer_taps_;
  for (std::size_t k = 1; k < outer_taps_; ++k) sources_[k] = outer_sources_[k] + at;
  for (const Source& source : segment.sources) {
    const Term& term = *output.along;
    const Planes<R>& planes = memory.planes[term.planes];
    if (source.where == Where::own)
      add(memory.inputs[term.input] + row_.offset + at + source.row * unit_, source.coefficient, row_length_);
    else if (source.where == Where::before)
      add(planes.before + (row_.number * term.widths.before + source.row) * unit_ + at % unit_,
          source.coefficient, term.widths.before * unit_);
    else
      add(planes.after + (row_.number * term.widths.after + source.row) * unit_ + at % unit_,
          source.coefficient, term.widths.after * unit_);
  }
  const double center = outer_center_ + segment.center;
  if (center == 0) return {sources_.data() + 1, coefficients_.data() + 1, steps_.data() + 1, taps_ - 1};
  const Term& any = output.along ? *output.along : output.outer.front();
  sources_[0] = memory.inputs[any.input] + row_.offset + at;
  coefficients_[0] = static_cast<R>(center);
  steps_[0] = row_length_;
  return {sources_.data(), coefficients_.data(), steps_.data(), taps_};
}

// What will be read of the inputs later. The first output fetches it for all.
template <class R>
std::span<const R* const> StencilSweep<R>::ahead(std::size_t output, Index offset, Index n,
                                                 const SweepMemory<R>& memory) {
  std::size_t count = 0;
  if (past_caches_ && output == 0)
    for (std::size_t i = 0; i < lead_.size(); ++i) {
      const Index from = offset + lead_[i] + fetch_distance_;
      if (from + n <= size_) ahead_[count++] = memory.inputs[i] + from;
    }
  return {ahead_.data(), count};
}

template <class R>
void StencilSweep<R>::write(std::size_t output, Index offset, const Taps& taps, Index n,
                            const SweepMemory<R>& memory) {
  R* to = memory.outputs[output] + offset;
  if (!past_caches_) {
    combine(to, taps.sources, taps.coefficients, taps.count, n);
    if (memory.visitor != nullptr) memory.visitor->after_output(output, offset, n, to);
    return;
  }
  StreamWriter& writer = writers_[output];
  for (Index done = 0; done < n;) {
    const Index some = std::min(n - done, write_bytes / static_cast<Index>(sizeof(R)));
    R* place = writer.reserve(to + done, some);
    combine(place, taps.sources, taps.coefficients, taps.count, some,
            ahead(output, offset + done, some, memory));
    if (memory.visitor != nullptr) memory.visitor->after_output(output, offset + done, some, place);
    done += some;
    for (std::size_t k = 0; k < taps.count; ++k) taps.sources[k] += some;
  }
}

template class StencilSweep<float>;
template class StencilSweep<double>;

}  // namespace shoal::linop
