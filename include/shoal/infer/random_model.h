// SPDX-License-Identifier: Apache-2.0
// Complete, runnable models of the architecture `llama` with random weights and a self-made vocabulary:
// for tests and benchmarks, which need a shape and not a meaning. Weights are scaled so that activations
// keep their size from layer to layer and logits have a standard deviation of about one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/infer/gguf_writer.h"
#include "shoal/tensor/format.h"

namespace shoal::infer {

enum class OutputMatrix {
  own,                // output.weight has its own numbers
  tied,               // no output.weight: the embedding is used
  copy_of_embedding,  // output.weight holds the embedding's bytes: computes what `tied` computes
};

/// The defaults are the preset "tiny": F32, a few hundred kilobytes, written in milliseconds.
struct RandomModelOptions {
  std::string name = "random";
  std::int64_t layers = 2;
  std::int64_t width = 64;
  std::int64_t ffn_width = 160;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_width = 0;    // 0: width / heads
  std::int64_t vocabulary = 512;  // at least 259: three special pieces and 256 bytes
  std::int64_t context = 256;
  float norm_epsilon = 1e-5f;
  float rope_base = 10000.0f;
  std::vector<float> rope_freqs;                // head_width / 2 factors for rope_freqs.weight; empty: none
  tensor::Format format = tensor::Format::f32;  // of all matrices; norms are F32
  std::optional<tensor::Format> output_format;  // of output.weight, where it is `own`
  bool more_bits = false;  // the mix of Q4_K_M and Q5_K_M: some of attn_v and ffn_down in Q6_K
  OutputMatrix output = OutputMatrix::own;
  std::uint64_t seed = 1;
  int files = 1;  // more: a split model
};

/// "tiny", or "tinyllama-1.1b": 22 layers, 2048 wide, Q4_0 with the output matrix in Q6_K as quantisers
/// write it. Throws invalid_argument that lists the presets.
RandomModelOptions random_model_preset(std::string_view name);

/// The model as a writer, to change before it is written. The same options give the same bytes on every
/// machine; a tensor's values depend on its name, its shape, its format and the seed alone.
GgufWriter random_model(const RandomModelOptions& options);

/// Writes the model and returns the paths of its files: {path}, or the parts of a split model named
/// after `path`. Throws invalid_argument (impossible shape) or io.
std::vector<std::string> write_random_model(const std::string& path, const RandomModelOptions& options = {});

}  // namespace shoal::infer
