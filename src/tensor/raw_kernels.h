// SPDX-License-Identifier: Apache-2.0
// What a kernel set provides: plain functions over plain pointers, which kernels.cpp dresses as a KernelSet.
//
// Why not KernelSet itself: the sets are compiled with their own instruction-set flags. An inline or
// template function of a shared header (std::span, std::string_view, ...) that such a file emitted
// would be a weak symbol, and the linker may pick that copy for the whole program, which then dies of
// an illegal instruction on an older processor. So files of a kernel set include only this header and
// others like it (types, and functions with internal linkage), <cstdint>, <cstring> and the
// intrinsics; all that they define is static or in an anonymous namespace, but for one table. A test
// (tests/tensor, no_shared_code) looks at the symbols of their object files.
#pragma once

#include <cstdint>

namespace shoal::tensor {

/// Operands of a product, as KernelSet::multiply takes them.
struct MultiplyArguments {
  const std::uint8_t* rows;  // of the whole matrix
  std::int64_t row_bytes;
  std::int64_t row_count;  // of the whole matrix: memory up to rows + row_bytes * row_count may be read
  std::int64_t columns;
  const std::uint8_t* x;  // prepared rows, prepared_bytes apart
  std::int64_t prepared_bytes;
  std::int64_t tokens;
  std::int64_t row_begin, row_end;
  float* y;
  std::int64_t y_stride;
  std::uint8_t* scratch;  // scratch_bytes(columns, tokens), 64-byte aligned, contents undefined
};

/// Indexed by the numeric value of a Format.
inline constexpr int format_count = 11;

struct RawKernels {
  /// x (columns floats) to a prepared row of `format` (prepared.h).
  void (*prepare)(int format, const float* x, std::int64_t columns, std::uint8_t* out);
  void (*multiply[format_count])(const MultiplyArguments&);
  std::int64_t (*scratch_bytes)(std::int64_t columns, std::int64_t tokens);
  void (*rms_norm)(const float* x, const float* weight, float epsilon, float* out, std::int64_t n);
  void (*silu_multiply)(float* gate, const float* up, std::int64_t n);
  void (*add)(float* x, const float* y, std::int64_t n);
  void (*softmax)(float* x, std::int64_t n);
  float (*dot_f32)(const float* q, const float* k, std::int64_t n);
  float (*dot_f16)(const float* q, const std::uint16_t* k, std::int64_t n);
  void (*accumulate_f32)(float weight, const float* v, float* out, std::int64_t n);
  void (*accumulate_f16)(float weight, const std::uint16_t* v, float* out, std::int64_t n);
  void (*to_f16)(const float* x, std::uint16_t* out, std::int64_t n);
};

extern const RawKernels scalar_kernels;
extern const RawKernels avx2_kernels;    // only in builds for x86-64
extern const RawKernels avx512_kernels;  // only in builds for x86-64

}  // namespace shoal::tensor
