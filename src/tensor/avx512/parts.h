// SPDX-License-Identifier: Apache-2.0
// The parts of the AVX-512 set, each in its own file. See raw_kernels.h for what may be included here.
#pragma once

#include "tensor/raw_kernels.h"

namespace shoal::tensor::avx512 {

void prepare(int format, const float* x, std::int64_t columns, std::uint8_t* out);
std::int64_t float_scratch_bytes(std::int64_t tokens);
std::int64_t quantised_scratch_bytes(std::int64_t columns, std::int64_t tokens);

void multiply_f32(const MultiplyArguments&);
void multiply_f16(const MultiplyArguments&);
void multiply_bf16(const MultiplyArguments&);
void multiply_q4_0(const MultiplyArguments&);
void multiply_q4_1(const MultiplyArguments&);
void multiply_q5_0(const MultiplyArguments&);
void multiply_q5_1(const MultiplyArguments&);
void multiply_q8_0(const MultiplyArguments&);
void multiply_q4_k(const MultiplyArguments&);
void multiply_q5_k(const MultiplyArguments&);
void multiply_q6_k(const MultiplyArguments&);

}  // namespace shoal::tensor::avx512
