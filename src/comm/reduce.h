// SPDX-License-Identifier: Apache-2.0
// Local combination of what several ranks contributed, in rank order.
#pragma once

#include <cstdint>
#include <span>

#include "shoal/comm/operation.h"

namespace shoal::comm {

/// out[i] = inputs[0][i] op inputs[1][i] op ..., left to right, for i < count. `out` may be one of the
/// inputs. Half precision is combined in float32 and rounded once. Throws unsupported for an
/// operation that the type does not have (complex minimum, logical operations on floats).
void combine(DType dtype, Reduction reduction, std::span<const void* const> inputs, void* out,
             std::int64_t count);

}  // namespace shoal::comm
