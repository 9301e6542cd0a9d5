// SPDX-License-Identifier: Apache-2.0
// Elements of a file as elements of an array.
#pragma once

#include <cstddef>
#include <span>

#include "shoal/base/dtype.h"

namespace shoal::array {

/// out[i] = element i of `raw`, whose bytes are in the other order when `swapped`. Complex to real is not
/// offered.
template <class T>
void convert_elements(DType from, bool swapped, const std::byte* raw, std::span<T> out);

}  // namespace shoal::array
