// SPDX-License-Identifier: Apache-2.0
// Reads a model's hyper-parameters from its metadata, and checks that the tensors are those which the
// architecture computes with: all of them, in the right shape, and no others that would change a result.
#include "shoal/infer/model_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "infer/gguf_names.h"
#include "infer/tensor_names.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

constexpr std::string_view supported_architectures[] = {"llama"};
// Products of two hyper-parameters stay within 64 bits.
constexpr std::int64_t max_hyper_parameter = INT32_MAX;

std::string read_architecture(const GgufMetadata& metadata) {
  const std::string& name = metadata.string("general.architecture");
  if (std::ranges::find(supported_architectures, name) == std::end(supported_architectures))
    fail(ErrorCode::unsupported,
         fmt::format("{}: architecture '{}' is not supported; supported are: {}", metadata.source,
                     printable(name), fmt::join(supported_architectures, ", ")));
  return name;
}

/// Lookups of "ARCHITECTURE.key" that accept no value a model cannot have.
class Keys {
 public:
  Keys(const GgufMetadata& metadata, std::string prefix) : metadata_(metadata), prefix_(std::move(prefix)) {}

  std::string full(std::string_view key) const { return fmt::format("{}.{}", prefix_, key); }
  bool has(std::string_view key) const { return metadata_.has(full(key)); }

  std::int64_t count(std::string_view key) const {
    const std::int64_t value = metadata_.integer(full(key));
    if (value < 1 || value > max_hyper_parameter)
      refuse(key, fmt::format("{}", value), "a positive 32-bit number");
    return value;
  }
  std::int64_t count_or(std::string_view key, std::int64_t fallback) const {
    return has(key) ? count(key) : fallback;
  }
  float positive(std::string_view key) const {
    const auto value = static_cast<float>(metadata_.real(full(key)));
    if (!(value > 0) || !std::isfinite(value))
      refuse(key, fmt::format("{}", value), "a positive finite number");
    return value;
  }
  float positive_or(std::string_view key, float fallback) const {
    return has(key) ? positive(key) : fallback;
  }
  std::string text_or(std::string_view key, std::string_view fallback) const {
    return metadata_.string_or(full(key), fallback);
  }

  [[noreturn]] void refuse(std::string_view key, std::string_view value, std::string_view expected) const {
    fail(ErrorCode::format,
         fmt::format("{}: key '{}' is {}, expected {}", metadata_.source, full(key), value, expected));
  }
  [[noreturn]] void not_supported(std::string_view key, std::string_view value) const {
    fail(ErrorCode::unsupported,
         fmt::format("{}: key '{}' is {}, which is not supported", metadata_.source, full(key), value));
  }

 private:
  const GgufMetadata& metadata_;
  std::string prefix_;
};

void read_sizes(const Keys& keys, ModelConfig& config) {
  config.layers = keys.count("block_count");
  config.width = keys.count("embedding_length");
  config.ffn_width = keys.count("feed_forward_length");
  config.context = keys.count("context_length");
  config.norm_epsilon = keys.positive("attention.layer_norm_rms_epsilon");
}

void read_heads(const Keys& keys, ModelConfig& config) {
  config.heads = keys.count("attention.head_count");
  config.kv_heads = keys.count_or("attention.head_count_kv", config.heads);
  if (config.heads % config.kv_heads != 0)
    keys.refuse("attention.head_count_kv", fmt::format("{}", config.kv_heads),
                fmt::format("a divisor of the {} heads", config.heads));
  if (!keys.has("attention.key_length") && config.width % config.heads != 0)
    keys.refuse("attention.head_count", fmt::format("{}", config.heads),
                fmt::format("a divisor of the width {} (or the key '{}')", config.width,
                            keys.full("attention.key_length")));
  config.head_width = keys.count_or("attention.key_length", config.width / config.heads);
  const std::int64_t value_width = keys.count_or("attention.value_length", config.head_width);
  if (value_width != config.head_width)
    keys.not_supported("attention.value_length",
                       fmt::format("{} beside keys of length {}", value_width, config.head_width));
}

void read_rope(const Keys& keys, ModelConfig& config) {
  config.rope_dimensions = keys.count_or("rope.dimension_count", config.head_width);
  if (config.rope_dimensions % 2 != 0 || config.rope_dimensions > config.head_width)
    keys.refuse("rope.dimension_count", fmt::format("{}", config.rope_dimensions),
                fmt::format("an even number up to the head width {}", config.head_width));
  config.rope_base = keys.positive_or("rope.freq_base", config.rope_base);

  // Files older than rope.scaling.* know the linear factor alone, as rope.scale_linear.
  const bool old = keys.has("rope.scale_linear") && !keys.has("rope.scaling.factor");
  const std::string_view factor_key = old ? "rope.scale_linear" : "rope.scaling.factor";
  const std::string type = keys.text_or("rope.scaling.type", keys.has(factor_key) ? "linear" : "none");
  if (type == "none") return;
  if (type != "linear" && type != "yarn")
    keys.not_supported("rope.scaling.type", fmt::format("'{}'", printable(type)));
  config.rope_scale = keys.positive(factor_key);
  if (type == "yarn") {
    config.rope_scaling = RopeScaling::yarn;
    config.rope_original_context = keys.count_or("rope.scaling.original_context_length", config.context);
  } else if (config.rope_scale != 1.0f) {
    config.rope_scaling = RopeScaling::linear;
  }
}

/// Keys that change what a llama model computes in a way that is not implemented: they may only hold the
/// value that changes nothing.
void refuse_variants(const GgufMetadata& metadata, const Keys& keys) {
  if (metadata.integer_or(keys.full("expert_count"), 0) != 0)
    keys.not_supported("expert_count",
                       fmt::format("{} (a mixture of experts)", metadata.integer(keys.full("expert_count"))));
  if (!metadata.boolean_or(keys.full("attention.causal"), true))
    keys.not_supported("attention.causal", "false");
  struct Neutral {
    std::string_view key;
    double value;
  };
  static constexpr Neutral neutral[] = {
      {"rope.scaling.attn_factor", 1},     {"rope.scaling.yarn_log_multiplier", 0},
      {"rope.scaling.yarn_ext_factor", 1}, {"rope.scaling.yarn_attn_factor", 1},
      {"rope.scaling.yarn_beta_fast", 32}, {"rope.scaling.yarn_beta_slow", 1}};
  for (const auto& [key, value] : neutral)
    if (const double real = metadata.real_or(keys.full(key), value); real != value)
      keys.not_supported(key, fmt::format("{}", real));
}

/// A tensor that is there and not empty: empty ones are markers, and count as absent.
const TensorInfo* find_tensor(const ModelFile& file, std::string_view name) {
  const TensorInfo* tensor = file.find(name);
  return tensor != nullptr && tensor->bytes > 0 ? tensor : nullptr;
}

const TensorInfo& require_tensor(const ModelFile& file, std::string_view name) {
  const TensorInfo* tensor = find_tensor(file, name);
  if (tensor == nullptr)
    fail(ErrorCode::format, fmt::format("{}: tensor '{}' is missing", file.path(), name));
  return *tensor;
}

void check_shape(const ModelFile& file, const TensorInfo& tensor, const std::vector<std::int64_t>& expected) {
  std::vector<std::int64_t> shape = tensor.shape;
  while (shape.size() > expected.size() && shape.back() == 1) shape.pop_back();
  if (shape != expected)
    fail(ErrorCode::format,
         fmt::format("{}: tensor '{}' has shape {}, expected {}", file.path(), printable(tensor.name),
                     shape_text(tensor.shape), shape_text(expected)));
}

void check_vector(const ModelFile& file, const TensorInfo& tensor, std::int64_t size) {
  check_shape(file, tensor, {size});
  if (tensor.format != tensor::Format::f32)
    fail(ErrorCode::unsupported, fmt::format("{}: tensor '{}' is {}, expected F32", file.path(),
                                             printable(tensor.name), tensor::traits(tensor.format).name));
}

enum class Kind { vector, matrix };

struct LayerTensor {
  std::string_view name;
  Kind kind;
  std::int64_t columns;
  std::int64_t rows;
};

/// What every layer holds (Touvron et al. 2023; the names are those of GGUF).
std::array<LayerTensor, 9> layer_tensors(const ModelConfig& c) {
  return {{{"attn_norm.weight", Kind::vector, c.width, 1},
           {"attn_q.weight", Kind::matrix, c.width, c.query_width()},
           {"attn_k.weight", Kind::matrix, c.width, c.kv_width()},
           {"attn_v.weight", Kind::matrix, c.width, c.kv_width()},
           {"attn_output.weight", Kind::matrix, c.query_width(), c.width},
           {"ffn_norm.weight", Kind::vector, c.width, 1},
           {"ffn_gate.weight", Kind::matrix, c.width, c.ffn_width},
           {"ffn_up.weight", Kind::matrix, c.width, c.ffn_width},
           {"ffn_down.weight", Kind::matrix, c.ffn_width, c.width}}};
}

void check_layers(const ModelFile& file, const ModelConfig& config) {
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const LayerTensor& wanted : layer_tensors(config)) {
      const TensorInfo& tensor = require_tensor(file, layer_tensor_name(layer, wanted.name));
      if (wanted.kind == Kind::vector)
        check_vector(file, tensor, wanted.columns);
      else
        check_shape(file, tensor, {wanted.columns, wanted.rows});
    }
}

void check_vocabulary(const ModelFile& file, const Keys& keys, ModelConfig& config) {
  const TensorInfo& embedding = require_tensor(file, embedding_name);
  config.vocabulary = embedding.rows();
  check_shape(file, embedding, {config.width, config.vocabulary});
  if (config.vocabulary > max_hyper_parameter)
    fail(ErrorCode::format,
         fmt::format("{}: tensor 'token_embd.weight' has {} rows, too many for token ids of 32 bits",
                     file.path(), config.vocabulary));
  const GgufArray* tokens = file.metadata().array("tokenizer.ggml.tokens");
  if (tokens != nullptr && static_cast<std::int64_t>(tokens->size()) != config.vocabulary)
    fail(ErrorCode::format,
         fmt::format("{}: key 'tokenizer.ggml.tokens' has {} entries, but 'token_embd.weight' has {} rows",
                     file.path(), tokens->size(), config.vocabulary));
  if (tokens == nullptr && keys.count_or("vocab_size", config.vocabulary) != config.vocabulary)
    keys.refuse("vocab_size", fmt::format("{}", keys.count("vocab_size")),
                fmt::format("the {} rows of 'token_embd.weight'", config.vocabulary));
}

void check_globals(const ModelFile& file, ModelConfig& config) {
  check_vector(file, require_tensor(file, output_norm_name), config.width);
  const TensorInfo* output = find_tensor(file, output_name);
  config.tied_output = output == nullptr;
  if (output != nullptr) check_shape(file, *output, {config.width, config.vocabulary});
  const TensorInfo* factors = find_tensor(file, rope_factors_name);
  if (factors != nullptr) check_vector(file, *factors, config.rope_dimensions / 2);
}

/// N of a name "blk.N.REST", and REST.
std::optional<std::pair<std::int64_t, std::string_view>> split_layer_name(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  std::int64_t layer = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc{} || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return std::pair{layer, name.substr(static_cast<std::size_t>(end - name.data()) + 1)};
}

/// Does a tensor of the file take part in the computation of other implementations, though not of this one?
bool changes_results(const TensorInfo& tensor, const ModelConfig& config) {
  static constexpr std::string_view global_variants[] = {
      "output.bias",          "output_norm.bias",     "token_embd.bias", "token_embd_norm.weight",
      "token_embd_norm.bias", "position_embd.weight", "output.scale"};
  if (std::ranges::find(global_variants, tensor.name) != std::end(global_variants)) return true;
  if (!tensor.name.starts_with("blk.")) return false;
  const auto layer = split_layer_name(tensor.name);
  if (!layer) return true;
  if (layer->second == "attn_rot_embd.weight") return false;  // rope frequencies, computed from rope_base
  const auto known = layer_tensors(config);
  return layer->first >= config.layers ||
         std::ranges::find(known, layer->second, &LayerTensor::name) == known.end();
}

void refuse_extra_tensors(const ModelFile& file, const ModelConfig& config) {
  for (const TensorInfo& tensor : file.tensors())
    if (tensor.bytes > 0 && changes_results(tensor, config))
      fail(ErrorCode::unsupported,
           fmt::format(
               "{}: tensor '{}' is not part of a {} model of {} layers as this program computes it; running "
               "without it would give wrong results",
               file.path(), printable(tensor.name), config.architecture, config.layers));
}

}  // namespace

ModelConfig read_config(const ModelFile& file) {
  const GgufMetadata& metadata = file.metadata();
  ModelConfig config;
  config.architecture = read_architecture(metadata);
  const Keys keys(metadata, config.architecture);
  read_sizes(keys, config);
  read_heads(keys, config);
  read_rope(keys, config);
  refuse_variants(metadata, keys);
  check_vocabulary(file, keys, config);
  check_globals(file, config);
  check_layers(file, config);
  refuse_extra_tensors(file, config);
  return config;
}

}  // namespace shoal::infer
