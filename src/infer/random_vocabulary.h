// SPDX-License-Identifier: Apache-2.0
// The self-made vocabulary of random models, in the SentencePiece style of the llama family.
#pragma once

#include <cstdint>

#include "shoal/infer/gguf_writer.h"

namespace shoal::infer {

inline constexpr std::int64_t min_random_vocabulary = 3 + 256;  // special pieces and bytes

/// Sets the tokenizer.ggml.* keys for `size` (>= min_random_vocabulary) tokens: <unk>, <s>, </s>, the
/// bytes <0x00> to <0xFF>, single characters, then longer pieces in order of falling score. Each longer
/// piece is two others joined, so that merging can reach it.
void set_random_vocabulary(GgufWriter& writer, std::int64_t size);

}  // namespace shoal::infer
