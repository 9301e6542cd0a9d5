// SPDX-License-Identifier: Apache-2.0
// Where a position's keys and values are in memory, and how they get there.
#include "shoal/infer/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "infer/byte_math.h"
#include "shoal/base/check.h"
#include "shoal/base/error.h"

namespace shoal::infer {

const char* to_string(KvFormat format) { return format == KvFormat::f16 ? "f16" : "f32"; }

KvFormat kv_format_from_string(std::string_view name) {
  if (name == "f16") return KvFormat::f16;
  if (name == "f32") return KvFormat::f32;
  fail(ErrorCode::invalid_argument, fmt::format("unknown KV cache format \"{}\": use f16 or f32", name));
}

std::uint64_t kv_layer_bytes(const ModelConfig& config, std::int64_t positions, KvFormat format) {
  const std::int64_t element_bytes = format == KvFormat::f16 ? 2 : 4;
  return align_up(checked_product({2, config.kv_heads, config.head_width, positions, element_bytes}));
}

KvCache::KvCache(const ModelConfig& config, std::int64_t layers, std::int64_t positions, KvFormat format)
    : format_(format),
      layers_(layers),
      positions_(positions),
      kv_heads_(config.kv_heads),
      head_width_(config.head_width),
      element_bytes_(format == KvFormat::f16 ? 2 : 4),
      layer_bytes_(static_cast<std::int64_t>(kv_layer_bytes(config, positions, format))),
      memory_(checked_product({layers, layer_bytes_}),
              fmt::format("the KV cache of {} layers and {} positions", layers, positions)) {}

void KvCache::truncate(std::int64_t length) {
  if (length < 0 || length > length_)
    fail(ErrorCode::invalid_argument,
         fmt::format("cannot cut the KV cache to {} positions: it holds {}", length, length_));
  length_ = length;
}

void KvCache::append(std::int64_t tokens) {
  SHOAL_CHECK(light, tokens >= 0 && tokens <= positions_ - length_);
  length_ += tokens;
}

void KvCache::store(const tensor::KernelSet& kernels, std::int64_t layer, std::int64_t position,
                    std::span<const float> keys, std::span<const float> values) {
  const std::span<const float> parts[] = {keys, values};
  for (std::int64_t part = 0; part < 2; ++part)
    for (std::int64_t h = 0; h < kv_heads_; ++h) {
      const float* row = parts[part].data() + h * head_width_;
      std::byte* to = head(layer, part, h) + position * head_width_ * element_bytes_;
      if (format_ == KvFormat::f16)
        kernels.to_f16(row, reinterpret_cast<std::uint16_t*>(to), head_width_);
      else
        std::copy_n(row, head_width_, reinterpret_cast<float*>(to));
    }
}

std::byte* KvCache::head(std::int64_t layer, std::int64_t part, std::int64_t kv_head) const {
  return memory_.data() + layer * layer_bytes_ +
         (part * kv_heads_ + kv_head) * positions_ * head_width_ * element_bytes_;
}

}  // namespace shoal::infer
