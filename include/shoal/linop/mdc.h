// SPDX-License-Identifier: Apache-2.0
// Multi-dimensional convolution: wave fields convolved in time and summed over a surface of receivers.
#pragma once

#include <optional>

#include "shoal/linop/linear_operator.h"

namespace shoal::linop {

struct Mdc {
  Index nt = 0;             // samples of time of model and data; odd if two-sided
  Index nv = 1;             // virtual sources
  double dt = 1;            // sampling of time
  double dr = 1;            // sampling of receivers: the kernel is scaled by dt dr sqrt(nt), unless prescaled
  bool twosided = true;     // the middle sample of the model is time 0
  bool conjugated = false;  // correlates instead: takes the conjugated kernel
  bool prescaled = false;
  /// Layouts of model [nt, nr, nv] and data [nt, ns, nv]; absent: split along the second axis, the third, or
  /// time, whichever is the first that gives each rank a part.
  std::optional<Layout> model{};
  std::optional<Layout> data{};
};

/// data = F1^H G F model with F and F1 the orthonormal real transforms along time and G applied frequency by
/// frequency. `kernel` [frequencies, ns, nr] holds the spectrum from frequency 0 on, split along its first
/// axis; frequencies beyond (nt + 2) / 2 are dropped with a warning. The transforms are shared out over the
/// ranks; one all_to_all on either side of G, and nothing else for the default layouts. Replicated layouts
/// cost an all_gather of the output.
template <class R>
AnyOperator<R> mdc(const DistributedArray<std::complex<R>>& kernel, const Mdc& options);

}  // namespace shoal::linop
