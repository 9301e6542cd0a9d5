// SPDX-License-Identifier: Apache-2.0
#include "shoal/base/random_bits.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

// From the state 1234567, as Rosetta Code lists them.
TEST(RandomBits, AreThoseOfSplitMix64) {
  std::uint64_t state = 1234567;
  for (const std::uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u}) {
    EXPECT_EQ(next_bits(state), expected);
    state += golden_step;
  }
}

}  // namespace
}  // namespace shoal
