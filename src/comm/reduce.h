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

/// out[i] = what changes nothing under `reduction`: 0 for a sum, 1 for a product, the largest value of the
/// type for a minimum, and so on. Throws unsupported as combine() does.
void fill_identity(DType dtype, Reduction reduction, void* out, std::int64_t count);

}  // namespace shoal::comm
