// SPDX-License-Identifier: Apache-2.0
// The header of NumPy's .npy files (numpy.lib.format): from bytes, and to bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "shoal/array/layout.h"
#include "shoal/base/dtype.h"

namespace shoal::array {

struct NpyHeader {
  DType dtype = DType::float64;
  bool swapped = false;  // not in this machine's byte order
  bool fortran_order = false;
  Shape shape;
  std::uint64_t data_offset = 0;  // length of the header

  std::uint64_t data_bytes() const;
};

/// Bytes that hold every header up to its text; how long the whole of one is that begins with them.
inline constexpr std::size_t npy_prefix_bytes = 12;
std::size_t npy_header_bytes(std::span<const std::byte> prefix, const std::string& file);

/// Throws format or unsupported, naming `file` and the field.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& file);

/// Of version 1.0, padded so that the data begin at a multiple of 64 bytes.
std::string format_npy_header(DType dtype, const Shape& shape, bool fortran_order);

}  // namespace shoal::array
