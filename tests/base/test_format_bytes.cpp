// SPDX-License-Identifier: Apache-2.0
#include "shoal/base/format_bytes.h"

#include <gtest/gtest.h>

#include <limits>

namespace shoal {
namespace {

TEST(FormatBytes, PicksTheUnitThatReadsBest) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((1u << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(std::uint64_t{98362432}), "93.8 MiB");
  EXPECT_EQ(format_bytes(std::uint64_t{3} << 40), "3.0 TiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
}

}  // namespace
}  // namespace shoal
