// SPDX-License-Identifier: Apache-2.0
// Applies sums of differences along axes to this rank's part of arrays: every output is written once, row by
// row, with all terms that make it up. Knows no communicator; the planes beside the part are handed in.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "linop/band.h"
#include "linop/stencil_kernels.h"

namespace shoal::linop {

/// outputs[output] += band along `axis` of inputs[input]. No two terms have the same output and axis.
struct StencilTerm {
  std::size_t output = 0, input = 0;
  int axis = 0;
  Band band;
};

/// Planes of a term's input beside the part, along the term's axis, as array::GhostPlanes lays them out.
struct PlaneWidths {
  Index before = 0, after = 0;
};
template <class R>
struct Planes {
  const R* before = nullptr;
  const R* after = nullptr;
};

/// Elements in reals (float or double); a complex one is two.
template <class R>
struct SweepMemory {
  std::vector<const R*> inputs;
  std::vector<R*> outputs;
  std::vector<Planes<R>> planes;  // of each term
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
  };
  struct Taps {
    const R** sources;
    const R* coefficients;
    std::size_t count;
  };

  void collapse(const array::Block& part, Index reals_per_element, const std::vector<StencilTerm>& terms);
  void split_inside_from_borders(std::span<const StencilTerm> terms);
  std::vector<Segment> make_segments(const Term& term, bool one_input) const;
  std::vector<Source> sources_of(const Term& term, Index row, bool one_input, double& center) const;
  void run_rows(const Part& part, const SweepMemory<R>& memory);
  void run_row(const Part& part, const SweepMemory<R>& memory);
  double add_outer(const Output& output, const SweepMemory<R>& memory);
  Taps taps_of(const Output& output, const Segment& segment, Index at, const SweepMemory<R>& memory);
  bool fits_whole(const Output& output, const Part& part) const;
  void write_whole(std::size_t o, const SweepMemory<R>& memory);
  void write(std::size_t output, Index offset, const Taps& taps, Index n, const SweepMemory<R>& memory);
  void fetch_ahead(std::size_t output, Index offset, Index n, const SweepMemory<R>& memory) const;
  void add(const R* source, R coefficient) {
    sources_[taps_] = source;
    coefficients_[taps_++] = coefficient;
  }

  // The axes of the sweep: those of terms and, as one, those between them; the last is the last of the terms'
  // and its elements are `unit_` reals: all axes behind it.
  std::vector<Index> extent_, stride_;  // stride in reals
  std::vector<std::size_t> dimension_;  // of the array's axes
  Index unit_ = 1;
  Index size_ = 0;  // of the part, in reals
  std::vector<Output> outputs_;
  std::vector<Index> lead_;  // of each input: how far ahead of an output element it is read, in reals
  bool past_caches_;
  SweepBox inside_;
  std::vector<SweepBox> borders_;

  // Of the box and the row that are under way.
  SweepBox box_;
  Row row_;
  std::vector<const R*> outer_sources_;  // where the row begins in the sources of terms across it
  std::vector<const R*> sources_;
  std::vector<R> coefficients_;
  std::size_t taps_ = 0, outer_taps_ = 0;
  double outer_center_ = 0;
  std::vector<StreamWriter<R>> writers_;
};

}  // namespace shoal::linop
