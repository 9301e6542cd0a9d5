// SPDX-License-Identifier: Apache-2.0
// Sizes from files and from users, multiplied and added without wrapping around.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "shoal/base/error.h"

namespace shoal::infer {

/// Everything that a kernel may load with aligned instructions begins at a multiple of this.
inline constexpr std::uint64_t memory_alignment = 64;

inline std::uint64_t checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    fail(ErrorCode::invalid_argument, "a size in bytes exceeds 64 bits: reduce the context or the chunk");
  return sum;
}

/// Product of factors that are not negative.
inline std::uint64_t checked_product(std::initializer_list<std::int64_t> factors) {
  std::uint64_t product = 1;
  for (const std::int64_t factor : factors)
    if (factor < 0 || __builtin_mul_overflow(product, static_cast<std::uint64_t>(factor), &product))
      fail(ErrorCode::invalid_argument, "a size in bytes exceeds 64 bits: reduce the context or the chunk");
  return product;
}

inline std::uint64_t align_up(std::uint64_t bytes) {
  return checked_add(bytes, memory_alignment - 1) / memory_alignment * memory_alignment;
}

}  // namespace shoal::infer
