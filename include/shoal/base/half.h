// SPDX-License-Identifier: Apache-2.0
// IEEE binary16 and bfloat16 as storage types: held as bits, computed with as float.
#pragma once

#include <bit>
#include <cstdint>

namespace shoal {

/// Round to nearest, ties to even; overflow gives infinity, NaN stays NaN.
constexpr std::uint16_t float16_bits(float value) {
  const std::uint32_t f = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((f >> 16) & 0x8000u);
  const std::uint32_t magnitude = f & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65536
  if (magnitude < 0x38800000u) {                                                    // below 2^-14: subnormal
    // Adding 0.5 puts the unit of the subnormal (2^-24) at the last bit of the sum's significand.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

constexpr float float16_value(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

/// Round to nearest, ties to even; NaN stays NaN.
constexpr std::uint16_t bfloat16_bits(float value) {
  const std::uint32_t f = std::bit_cast<std::uint32_t>(value);
  if ((f & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((f >> 16) | 0x40u);
  return static_cast<std::uint16_t>((f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
}

constexpr float bfloat16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

struct float16 {
  std::uint16_t bits = 0;
  constexpr float16() = default;
  constexpr explicit float16(float value) : bits(float16_bits(value)) {}
  constexpr explicit operator float() const { return float16_value(bits); }
  friend constexpr bool operator==(float16, float16) = default;
};

struct bfloat16 {
  std::uint16_t bits = 0;
  constexpr bfloat16() = default;
  constexpr explicit bfloat16(float value) : bits(bfloat16_bits(value)) {}
  constexpr explicit operator float() const { return bfloat16_value(bits); }
  friend constexpr bool operator==(bfloat16, bfloat16) = default;
};

}  // namespace shoal
