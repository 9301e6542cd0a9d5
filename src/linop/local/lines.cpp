// SPDX-License-Identifier: Apache-2.0
#include "shoal/linop/local/lines.h"

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::linop::local {

Lines lines_of(const Shape& dims, int axis) {
  const int axes = static_cast<int>(dims.size());
  const int place = axis < 0 ? axis + axes : axis;
  if (place < 0 || place >= axes)
    fail(ErrorCode::invalid_argument, fmt::format("axis {} of an array of {} axes", axis, axes));
  array::size_of_shape(dims);
  Lines lines;
  for (int i = 0; i < axes; ++i) {
    const Index n = dims[static_cast<std::size_t>(i)];
    (i < place ? lines.outer : i == place ? lines.length : lines.inner) *= n;
  }
  return lines;
}

}  // namespace shoal::linop::local
