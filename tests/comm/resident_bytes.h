// SPDX-License-Identifier: Apache-2.0
// Memory of this process that is in use, as the operating system counts it.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace shoal::comm {

/// Sanitizers keep freed memory for a while, so that it says nothing; they look for leaks themselves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

inline std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace shoal::comm
