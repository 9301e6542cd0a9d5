// SPDX-License-Identifier: Apache-2.0
// An array seen along one axis: `outer` times `length` times `inner`, in C order.
#pragma once

#include "shoal/array/layout.h"

namespace shoal::linop::local {

using array::Index;
using array::Shape;

struct Lines {
  Index outer = 1, length = 1, inner = 1;
  Index size() const { return outer * length * inner; }
};

/// Of dims along `axis` (negative counts from the end). Throws invalid_argument for an axis that is not
/// there.
Lines lines_of(const Shape& dims, int axis);

}  // namespace shoal::linop::local
