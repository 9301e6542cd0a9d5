// SPDX-License-Identifier: Apache-2.0
// The prepared form of a row of activations, the same bits in every kernel set.
//
// For F32, F16 and BF16 weights: the floats, padded with zeros to a multiple of 16.
//
// For quantised weights, in units of 32 elements: an int8 code q = round(x / scale) and scale =
// max|x| / 127 a unit. K formats share this: 32 elements are finer than the 256 of their blocks, so
// the products are more accurate, and one inner loop serves all formats. A unit with a non-finite
// element has codes 0 and scale NaN, which makes every product with it NaN. Arrays one after the other,
// all padded with zero units to a multiple of 16:
//   int8  codes [units * 32]   in the order of the arrangement
//   float scale [units]
//   float sum   [units]        scale * (sum of the unit's codes): multiplies the minimum of a block
//   int32 code_sum32 [units]   sum of the unit's codes: takes back the offset of unsigned weight codes
//   int32 code_sum16 [units * 2]   the same for each half unit
//
// Arrangement: `halves`, for the 32-element formats that pack elements i and i + 16 in a byte, holds
// each four units as their first halves (4 x 16 codes), then their second halves; `natural` is plain order.
#pragma once

#include <cstdint>

namespace shoal::tensor {

enum class Arrangement { floats, natural, halves };

/// `format` is the numeric value of a Format: f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, ...
static inline Arrangement arrangement_of(int format) {
  if (format < 3) return Arrangement::floats;
  return format < 7 ? Arrangement::halves : Arrangement::natural;
}

static inline std::int64_t padded_floats(std::int64_t columns) { return (columns + 15) / 16 * 16; }
static inline std::int64_t padded_units(std::int64_t columns) { return (columns / 32 + 15) / 16 * 16; }

/// Byte offsets of a prepared row's arrays.
struct PreparedLayout {
  std::int64_t scale, sum, code_sum32, code_sum16, bytes;
};

static inline PreparedLayout prepared_layout(std::int64_t columns) {
  const std::int64_t units = padded_units(columns);
  return {units * 32, units * 36, units * 40, units * 44, units * 52};
}

static inline std::int64_t prepared_row_bytes(int format, std::int64_t columns) {
  return arrangement_of(format) == Arrangement::floats ? 4 * padded_floats(columns)
                                                       : prepared_layout(columns).bytes;
}

/// Where the code of an element is, in the `halves` arrangement.
static inline std::int64_t halves_position(std::int64_t element) {
  const std::int64_t unit = element / 32, in_unit = element % 32;
  return unit / 4 * 128 + in_unit / 16 * 64 + unit % 4 * 16 + in_unit % 16;
}

}  // namespace shoal::tensor
