// SPDX-License-Identifier: Apache-2.0
// Applies sums of differences along axes to this rank's part of arrays: every output is written once, row by
// row, with all terms that make it up. Knows no communicator; the planes beside the part are handed in.
//
// The words by an example: y = d/dx0 + d/dx2, both centered, of a part of 4 x 5 x 6 doubles that is split
// along axis 0.
//
//   dimensions  The axes up to the last one with a term; neighbours without terms are one dimension.
//               What lies behind the last is one element. Here 4, 5, 6, and an element is one real.
//               Of d/dx0 alone there is one dimension, 4, and an element is a plane of 30 reals.
//   row         The elements along the last dimension, one after the other in memory: 6. The
//               dimensions before it are the outer ones; their indices (i, j) say which row it is.
//   taps        What is summed for an output: sources and coefficients. Here four: 30 reals before
//               and behind (of the outer term), 1 before and behind (of the term along the row).
//   segments    Parts of a row with the same taps along it: k = 0, k = 1..4 and k = 5.
//   alike       Rows one after the other with the same outer taps, here j = 0..4 of any i. They are
//               computed as one long row with the taps of the longest segment; then the other
//               segments, for which that read elements of other rows, are mended. So the inner loop
//               knows no ends of rows.
//   borders     Rows with taps in planes beside the part: i = 0 and i = 3. All others are inside, and
//               are computed while the planes travel.
//   pieces      Long elements, as those of d/dx0 in a large array, are cut: the sweep goes through all
//               rows with the first piece of each, then with the next.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "linop/band.h"
#include "linop/stencil_kernels.h"
#include "shoal/array/streaming.h"

namespace shoal::linop {

/// outputs[output] += band along `axis` of inputs[input]. No two terms have the same output and axis.
struct StencilTerm {
  std::size_t output = 0, input = 0;
  int axis = 0;
  Band band;
};

/// The terms of the transpose.
std::vector<StencilTerm> transposed(const std::vector<StencilTerm>& terms);

/// Elements as reals.
template <class T>
const Real<T>* reals(std::span<const T> elements) {
  return reinterpret_cast<const Real<T>*>(elements.data());
}
template <class T>
Real<T>* reals(std::span<T> elements) {
  return reinterpret_cast<Real<T>*>(elements.data());
}

/// Planes of a term's input beside the part, along the term's axis, as array::GhostPlanes lays them out.
struct PlaneWidths {
  Index before = 0, after = 0;
};
template <class R>
struct Planes {
  const R* before = nullptr;
  const R* after = nullptr;
};

/// Is told about reals of inputs before they are read, and of outputs when they are computed: each once.
template <class R>
class SweepVisitor {
 public:
  virtual ~SweepVisitor() = default;
  virtual void before_input(std::size_t input, Index first, Index count) = 0;
  /// `reals`: where they are now.
  virtual void after_output(std::size_t output, Index first, Index count, R* reals) = 0;
};

/// Elements in reals (float or double); a complex one is two.
template <class R>
struct SweepMemory {
  std::vector<const R*> inputs;
  std::vector<R*> outputs;
  std::vector<Planes<R>> planes;       // of each term
  SweepVisitor<R>* visitor = nullptr;  // or null; then begin() comes before the first run(), end() after all
};

/// Rows of the part, by half-open ranges along the axes of the sweep.
struct SweepBox {
  std::vector<Index> begin, end;
};

template <class R>
class StencilSweep {
 public:
  /// `part`: this rank's block of the arrays. `widths`: for each term. `past_caches`: the outputs are too
  /// large to stay in the caches.
  StencilSweep(const array::Block& part, Index reals_per_element, std::vector<StencilTerm> terms,
               std::vector<PlaneWidths> widths, bool past_caches);

  /// What needs no planes, and the rest in disjoint boxes.
  const SweepBox& inside() const { return inside_; }
  const std::vector<SweepBox>& borders() const { return borders_; }

  void run(const SweepBox& box, const SweepMemory<R>& memory);

  /// The visitor sees the first `head` and the last `tail` reals of each input, which others are sent.
  void begin(const SweepMemory<R>& memory, Index head, Index tail);
  /// And what has not been read.
  void end(const SweepMemory<R>& memory);

 private:
  // Where a tap's element lies: in the input itself, or in planes beside the part.
  enum class Where : std::uint8_t { own, before, after };
  struct Source {
    Where where;
    Index row;  // along the axis: from the current row in `own`, else the plane
    R coefficient;
  };
  // The rows of a term along the last axis, where neighbours in a row of the sweep have the same taps.
  struct Segment {
    Index begin, end;
    double center;
    std::vector<Source> sources;
  };
  struct Term {
    std::size_t input, planes;
    std::size_t dimension;
    Index first;  // global index of the part's first row
    Band band;
    PlaneWidths widths;
    Index alike_begin, alike_end;  // rows of the part with the same taps, all of them within the part
  };
  struct Output {
    std::vector<Term> outer;        // along all axes of the sweep but the last
    std::optional<Term> along;      // along the last
    std::vector<Segment> segments;  // of `along`; one without taps if there is none
    std::size_t longest = 0;        // of the segments
    bool one_input;                 // then the middle taps of all terms are one
  };
  // A part of a row of the sweep: elements [begin, end) along the last axis, of each the reals [first, last).
  struct Part {
    Index begin, end, first, last;
  };
  struct Row {
    std::vector<Index> index;  // in the outer dimensions
    Index offset = 0;          // in reals
    Index number = 0;          // in C order
    Index alike = 1;           // rows from here on that are computed as one
  };
  struct Taps {
    const R** sources;
    const R* coefficients;
    const Index* steps;  // of the sources, to the next row
    std::size_t count;
  };
  using StreamWriter = array::StreamWriter<R>;

  void collapse(const array::Block& part, Index reals_per_element, const std::vector<StencilTerm>& terms);
  void split_inside_from_borders(std::span<const StencilTerm> terms);
  void find_alike(Term& term) const;
  std::vector<Segment> make_segments(const Term& term, bool one_input) const;
  std::vector<Source> sources_of(const Term& term, Index row, bool one_input, double& center) const;
  void run_rows(const Part& part, const SweepMemory<R>& memory);
  Index rows_alike(const Part& part) const;
  void run_row(const Part& part, const SweepMemory<R>& memory);
  double add_outer(const Output& output, const SweepMemory<R>& memory);
  Taps taps_of(const Output& output, const Segment& segment, Index at, const SweepMemory<R>& memory);
  bool fits_whole(const Output& output, const Part& part) const;
  void write_whole(std::size_t o, Index rows, const SweepMemory<R>& memory);
  static void combine_column(R* out, Index step, Index rows, const Taps& taps, Index at);
  void mend(const Output& output, const Segment& segment, Index rows, R* to, const SweepMemory<R>& memory);
  void write(std::size_t output, Index offset, const Taps& taps, Index n, const SweepMemory<R>& memory);
  void visit_inputs(Index end, const SweepMemory<R>& memory);
  std::span<const R* const> ahead(std::size_t output, Index offset, Index n, const SweepMemory<R>& memory);
  void add(const R* source, R coefficient, Index step) {
    sources_[taps_] = source;
    steps_[taps_] = step;
    coefficients_[taps_++] = coefficient;
  }

  // The axes of the sweep: those of terms and, as one, those between them; the last is the last of the terms'
  // and its elements are `unit_` reals: all axes behind it.
  std::vector<Index> extent_, stride_;  // stride in reals
  std::vector<std::size_t> dimension_;  // of the array's axes
  Index unit_ = 1;
  Index row_length_ = 0;  // in reals
  Index size_ = 0;        // of the part, in reals
  std::vector<Output> outputs_;
  std::vector<Index> lead_;  // of each input: how far ahead of an output element it is read, in reals
  bool past_caches_;
  SweepBox inside_;
  std::vector<SweepBox> borders_;
  // The visitor has seen of each input the reals up to visited_[input], and those from tail_ on.
  std::vector<Index> visited_;
  Index tail_ = 0;

  // Of the box and the row that are under way.
  SweepBox box_;
  Row row_;
  std::vector<const R*> outer_sources_;  // where the row begins in the sources of terms across it
  std::vector<const R*> sources_;
  std::vector<R> coefficients_;
  std::vector<Index> steps_;
  std::size_t taps_ = 0, outer_taps_ = 0;
  double outer_center_ = 0;
  Index fetch_distance_ = 0;     // in reals
  std::vector<const R*> ahead_;  // what is fetched meanwhile, of each input
  std::vector<StreamWriter> writers_;
};

}  // namespace shoal::linop
