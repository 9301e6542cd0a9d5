// SPDX-License-Identifier: Apache-2.0
#include "array/memory.h"

#include <sys/mman.h>

#include <cstdlib>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::array {

std::shared_ptr<void> allocate(std::size_t bytes) {
  // From a few large pages on they are worth asking for: a first touch of 80 MB in pages of 4 KiB takes
  // longer than an addition of two such arrays.
  constexpr std::size_t line = 64, large_page = std::size_t{2} << 20;
  const std::size_t alignment = bytes >= 2 * large_page ? large_page : line;
  // What a process can address on today's machines; a size beyond is not worth asking for.
  constexpr std::size_t most = std::size_t{1} << 47;
  void* memory =
      bytes < most ? std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment) : nullptr;
  if (!memory)
    fail(ErrorCode::out_of_memory, fmt::format("an array of {} bytes on this rank does not fit", bytes));
#ifdef MADV_HUGEPAGE
  // A wish: what is refused changes nothing but the speed.
  if (alignment == large_page) (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return {memory, [](void* p) { std::free(p); }};
}

}  // namespace shoal::array
