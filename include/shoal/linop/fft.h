// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform over any axes of a distributed array.
//
// Axes that are whole on a rank are transformed where they are. For the others the array is moved to a layout
// in which they are whole, by one all_to_all each time: one for slabs whose range may stay in the other
// layout (FftRange::transposed) and two to come back; pencils only where there are too few planes for the
// ranks. An array of one axis is split into the rows and columns of a matrix (the six-step algorithm, Bailey
// 1990), or, if it is short or its length has no useful factors, gathered.
//
// How data move, by an example, stands in src/linop/slab_steps.h: slabs along the first axis, within a host,
// where each plane goes from the cache straight to its owners' memory. That path takes symmetric memory for
// the rank's share of the spectrum (under OpenSHMEM: `symmetric_bytes` of the job must have room); elsewhere,
// or without room, the array travels in messages.
//
// On processors with AVX-512, lengths of factors 2, 3 and 5 up to 4096 are transformed by code of our own,
// all others by FFTW, with plans that are made without measuring (docs/decisions/0010). So making an Fft
// takes about a millisecond besides its memory, and the bits of the result are the same in every run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "shoal/linop/linear_operator.h"
#include "shoal/linop/local/fourier.h"

namespace shoal::linop {

using local::FftScale;

/// Which layout the transform is left in.
enum class FftRange : std::uint8_t {
  natural,    // split along the axes that the domain is split along
  transposed  // as the last stage leaves it, which saves a redistribution in either direction
};

struct FftOptions {
  /// Of a real transform the last of these is the one whose half is kept. Empty: all, in order.
  std::vector<int> axes{};
  FftScale scale = FftScale::none;
  /// Lengths of the transform along each of the axes: longer ones pad with zeros behind, shorter ones cut.
  /// Empty: the extents.
  std::vector<Index> lengths{};
  /// Distance of the samples, for frequencies(): one for all axes, or one for each.
  std::vector<double> sampling{1.0};
  /// Whether index n/2 is the origin of the input (ifftshift before) and of the output (fftshift after): one
  /// for all axes, or one for each. The halved axis is not shifted after.
  std::vector<bool> shift_before{false};
  std::vector<bool> shift_after{false};
  /// Of a real transform: the number of bins of the halved axis that are kept. 0: all, n/2 + 1.
  Index bins = 0;
  FftRange range = FftRange::natural;
  /// The layout of the range in full, instead.
  std::optional<Layout> range_layout{};
};

/// A linear operator from arrays of D to complex ones. D real: the non-negative frequencies of the last of
/// the axes, those but 0 and (n even) the highest times sqrt(2), so that the adjoint is a true one in the
/// real part of the inner product. The adjoint is the backward transform with the same scale.
template <class D>
class Fft {
 public:
  using domain_type = D;
  using range_type = std::complex<Real<D>>;

  /// Collective: all ranks pass the same.
  Fft(const comm::Communicator& communicator, const Layout& domain, FftOptions options = {});

  const comm::Communicator& communicator() const;
  const Layout& domain() const;
  const Layout& range() const;
  void apply(const DistributedArray<D>& x, DistributedArray<range_type>& y) const;
  void apply_adjoint(const DistributedArray<range_type>& y, DistributedArray<D>& x) const;
  /// x = the array whose transform is y, for every scale; with padding, without the pad. Throws unsupported
  /// where a transform is shorter than its axis or drops bins.
  void apply_inverse(const DistributedArray<range_type>& y, DistributedArray<D>& x) const;

  /// Of the bins along the i-th of the axes, in the order of the output: cycles per unit of the sampling.
  std::vector<double> frequencies(int i) const;
  /// How often apply() redistributes the array.
  int redistributions() const;

 private:
  class Implementation;
  std::shared_ptr<const Implementation> self_;
};

}  // namespace shoal::linop
