// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace shoal {

/// A size for people, in powers of 1024 with one decimal: "512 B", "98.4 KiB", "1.2 GiB".
std::string format_bytes(std::uint64_t bytes);

}  // namespace shoal
