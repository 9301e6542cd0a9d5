// SPDX-License-Identifier: Apache-2.0
// The compute kernels of a language model, one set per instruction set, chosen at run time.
//
// Matrix products take their right-hand side in a prepared form: `prepare` turns a row of float
// activations into what the weight format multiplies with (int8 blocks for the quantised formats,
// plain floats for F32, F16 and BF16), once for all the matrices that read it.
//
// Determinism: an output element is computed in one fixed order of operations, which depends on the
// kernel set, the weight format and the number of columns alone: not on how many tokens are in the
// batch, nor on which rows a thread was given. So logits are the same bits however a model is split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "shoal/tensor/format.h"

namespace shoal::tensor {

/// A weight matrix (rows, columns), row-major, borrowed; row r starts at data + r * row_bytes.
struct Matrix {
  Format format = Format::f32;
  std::int64_t rows = 0;     // output features
  std::int64_t columns = 0;  // input features
  const std::byte* data = nullptr;
};

struct KernelSet {
  std::string_view name;  // "scalar", "avx2", "avx512"

  /// Bytes of one prepared row of `columns` activations for weights of `format` (a multiple of 64).
  std::int64_t (*prepared_bytes)(Format format, std::int64_t columns);

  /// Prepares x (columns) into `out`. `format` is that of the weights. Non-finite activations must
  /// give a non-finite product (they are reported to the user, not hidden).
  void (*prepare)(Format format, std::span<const float> x, std::byte* out);

  /// y[t * y_stride + r] = sum_c w[r, c] * x[t, c] for r in [row_begin, row_end), t in [0, tokens).
  /// `x` holds `tokens` prepared rows, prepared_bytes(w.format, w.columns) apart.
  void (*multiply)(const Matrix& w, const std::byte* x, std::int64_t tokens, std::int64_t row_begin,
                   std::int64_t row_end, float* y, std::int64_t y_stride);

  /// out[i] = x[i] / sqrt(mean(x^2) + epsilon) * weight[i]   (Zhang & Sennrich 2019, eq. 4)
  void (*rms_norm)(std::span<const float> x, std::span<const float> weight, float epsilon,
                   std::span<float> out);

  /// gate[i] = silu(gate[i]) * up[i], silu(v) = v / (1 + exp(-v))   (Shazeer 2020, SwiGLU)
  void (*silu_multiply)(std::span<float> gate, std::span<const float> up);

  /// x[i] += y[i]
  void (*add)(std::span<float> x, std::span<const float> y);

  /// In place softmax of x, computed after subtracting the maximum.
  void (*softmax)(std::span<float> x);

  /// sum_i q[i] * k[i] for a row of the KV cache, stored as float32 or float16 bits.
  float (*dot_f32)(const float* q, const float* k, std::int64_t n);
  float (*dot_f16)(const float* q, const std::uint16_t* k, std::int64_t n);

  /// out[i] += weight * v[i]
  void (*accumulate_f32)(float weight, const float* v, float* out, std::int64_t n);
  void (*accumulate_f16)(float weight, const std::uint16_t* v, float* out, std::int64_t n);

  /// float32 to float16 bits, round to nearest even.
  void (*to_f16)(const float* x, std::uint16_t* out, std::int64_t n);
};

/// All sets that this machine can run, slowest ("scalar") first.
std::span<const KernelSet* const> available_kernels();

/// The named set, or null when this machine cannot run it (or it was not built).
const KernelSet* find_kernels(std::string_view name);

/// The fastest set of this machine, or the one that the environment variable SHOAL_KERNELS names
/// (throws invalid_argument when that one is not available, listing those that are).
const KernelSet& default_kernels();

}  // namespace shoal::tensor
