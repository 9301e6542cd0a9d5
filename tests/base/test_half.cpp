// SPDX-License-Identifier: Apache-2.0
#include "shoal/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shoal {
namespace {

TEST(Half, EveryBinary16ValueSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = float16_value(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float16_value(float16_bits(value))));
    } else {
      ASSERT_EQ(float16_bits(value), bits) << "value " << value;
    }
  }
}

TEST(Half, RoundsToNearestTiesToEven) {
  EXPECT_EQ(float16_bits(1.0f), 0x3c00);
  EXPECT_EQ(float16_bits(1.0f + 0x1p-11f), 0x3c00);             // tie, to even
  EXPECT_EQ(float16_bits(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);  // above the tie
  EXPECT_EQ(float16_bits(1.0f + 3 * 0x1p-11f), 0x3c02);         // tie, to even
  EXPECT_EQ(float16_bits(65519.0f), 0x7bff);
  EXPECT_EQ(float16_bits(65520.0f), 0x7c00);  // rounds to infinity
  EXPECT_EQ(float16_bits(0x1p-25f), 0x0000);  // tie between 0 and the smallest subnormal
  EXPECT_EQ(float16_bits(0x1.8p-25f), 0x0001);
  EXPECT_EQ(float16_bits(-std::numeric_limits<float>::infinity()), 0xfc00);
}

TEST(Half, Bfloat16RoundsToNearestTiesToEven) {
  EXPECT_EQ(bfloat16_bits(1.0f), 0x3f80);
  EXPECT_EQ(bfloat16_bits(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(bfloat16_bits(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_TRUE(std::isnan(bfloat16_value(bfloat16_bits(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace
}  // namespace shoal
