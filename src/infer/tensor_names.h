// SPDX-License-Identifier: Apache-2.0
// The names that llama-type models give their tensors in GGUF files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::infer {

inline constexpr std::string_view embedding_name = "token_embd.weight";
inline constexpr std::string_view output_norm_name = "output_norm.weight";
inline constexpr std::string_view output_name = "output.weight";
inline constexpr std::string_view rope_factors_name = "rope_freqs.weight";

/// What follows "blk.LAYER." in the names of a block's tensors.
inline constexpr std::string_view layer_parts[] = {
    "attn_norm.weight", "attn_q.weight",   "attn_k.weight", "attn_v.weight",  "attn_output.weight",
    "ffn_norm.weight",  "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"};

inline std::string layer_tensor_name(std::int64_t layer, std::string_view part) {
  return "blk." + std::to_string(layer) + "." + std::string(part);
}

}  // namespace shoal::infer
