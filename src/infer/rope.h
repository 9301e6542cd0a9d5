// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al. 2021, RoFormer), with linear and YaRN scaling (Peng et al. 2023).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shoal/infer/model_config.h"

namespace shoal::infer {

class Rope {
 public:
  /// `factors` (rope_dimensions / 2) divide the frequencies; empty for all 1.
  Rope(const ModelConfig& config, std::span<const float> factors);

  /// Pairs of elements that are rotated in a head: rope_dimensions / 2.
  std::int64_t pairs() const { return static_cast<std::int64_t>(frequencies_.size()); }

  /// cosine[i], sine[i] of the angle of pair i at `position`, times YaRN's attention factor.
  void angles(std::int64_t position, std::span<float> cosine, std::span<float> sine) const;

  /// Rotates the adjacent elements (2i, 2i+1) of each head; `x` is (heads, head_width). Files of the
  /// llama family have the rows of the q and k matrices permuted to this order.
  static void rotate(std::span<float> x, std::int64_t head_width, std::span<const float> cosine,
                     std::span<const float> sine);

 private:
  std::vector<double> frequencies_;  // radians per position
  double magnitude_ = 1.0;
};

}  // namespace shoal::infer
