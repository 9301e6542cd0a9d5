// SPDX-License-Identifier: Apache-2.0
// Memory of arrays.
#pragma once

#include <cstddef>
#include <memory>

namespace shoal::array {

/// `bytes`, aligned for the widest vectors, in large pages where the system gives them. Throws out_of_memory.
std::shared_ptr<void> allocate(std::size_t bytes);

}  // namespace shoal::array
