// SPDX-License-Identifier: Apache-2.0
// Random bits that are the same on every machine: SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, "Fast
// splittable pseudorandom number generators", 2014). Its n-th number is a hash of n, so whoever knows n needs
// no state and no neighbour.
#pragma once

#include <cstdint>

namespace shoal {

/// What the state grows by from number to number.
inline constexpr std::uint64_t golden_step = 0x9e3779b97f4a7c15;

/// The hash; it is one to one. Every bit of the result depends on every bit of `z`.
constexpr std::uint64_t mixed_bits(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// The number that follows the state `z`.
constexpr std::uint64_t next_bits(std::uint64_t z) { return mixed_bits(z + golden_step); }

}  // namespace shoal
