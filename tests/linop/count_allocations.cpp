// SPDX-License-Identifier: Apache-2.0
#include "linop/count_allocations.h"

#include <cstdlib>
#include <new>

namespace {
thread_local int count = 0;
}

int shoal::linop::checks::allocations() { return count; }

void* operator new(std::size_t bytes) {
  ++count;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
