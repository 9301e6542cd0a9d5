// SPDX-License-Identifier: Apache-2.0
// Keys and values of the positions seen so far, for the layers that one PE owns.
//
// Layout: per layer all keys, then all values, each (kv_heads, positions, head_width): what one head
// attends to is contiguous, because attention streams it once a token.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "shoal/infer/anonymous_memory.h"
#include "shoal/infer/model_config.h"
#include "shoal/tensor/kernels.h"

namespace shoal::infer {

enum class KvFormat { f16, f32 };
const char* to_string(KvFormat format);  // "f16", "f32"

/// The format of that name; throws Error (invalid_argument) that lists the names.
KvFormat kv_format_from_string(std::string_view name);

/// Bytes that one layer takes for `positions` positions, keys and values together.
std::uint64_t kv_layer_bytes(const ModelConfig& config, std::int64_t positions, KvFormat format);

class KvCache {
 public:
  /// For `layers` layers and at most `positions` positions. Pages are used as positions are filled.
  KvCache(const ModelConfig& config, std::int64_t layers, std::int64_t positions, KvFormat format);

  KvFormat format() const { return format_; }
  std::int64_t layers() const { return layers_; }
  std::int64_t positions() const { return positions_; }
  std::uint64_t bytes() const { return memory_.size(); }

  /// Positions filled so far. A chunk of tokens is appended at length(), in all layers.
  std::int64_t length() const { return length_; }
  /// Forgets the positions from `length` on (throws invalid_argument when there are not so many).
  void truncate(std::int64_t length);
  /// Declares `tokens` further positions filled, after store() was called for them in every layer.
  void append(std::int64_t tokens);

  /// Keeps one position of one layer; `keys` and `values` are (kv_heads, head_width).
  /// Different positions may be stored from different threads.
  void store(const tensor::KernelSet& kernels, std::int64_t layer, std::int64_t position,
             std::span<const float> keys, std::span<const float> values);

  /// The rows (positions, head_width) of one head; T is float for f32 and uint16_t (bits) for f16.
  template <class T>
  const T* keys(std::int64_t layer, std::int64_t kv_head) const {
    return reinterpret_cast<const T*>(head(layer, 0, kv_head));
  }
  template <class T>
  const T* values(std::int64_t layer, std::int64_t kv_head) const {
    return reinterpret_cast<const T*>(head(layer, 1, kv_head));
  }

 private:
  std::byte* head(std::int64_t layer, std::int64_t part, std::int64_t kv_head) const;

  KvFormat format_;
  std::int64_t layers_;
  std::int64_t positions_;
  std::int64_t kv_heads_;
  std::int64_t head_width_;
  std::int64_t element_bytes_;
  std::int64_t layer_bytes_;
  std::int64_t length_ = 0;
  AnonymousMemory memory_;
};

}  // namespace shoal::infer
