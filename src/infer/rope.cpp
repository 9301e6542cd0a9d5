// SPDX-License-Identifier: Apache-2.0
// Frequencies once per model, angles once per position in double: at position 100,000 a float angle would
// be wrong by 0.004 rad.
#include "infer/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "shoal/base/check.h"

namespace shoal::infer {
namespace {

// YaRN's alpha and beta for the llama family (Peng et al. 2023, section 3.2): pairs that turn more often than
// this within the original context keep their frequency, pairs that turn less often are interpolated.
constexpr double fast_rotations = 32.0;
constexpr double slow_rotations = 1.0;

/// The (fractional) pair that turns `rotations` times within the original context.
double pair_turning(double rotations, double dimensions, double base, double context) {
  return dimensions * std::log(context / (rotations * 2.0 * std::numbers::pi)) / (2.0 * std::log(base));
}

/// 1 where pair i keeps its frequency, 0 where it is interpolated, a ramp between (eq. 18).
double yarn_ramp(std::int64_t i, const ModelConfig& config) {
  const auto dimensions = static_cast<double>(config.rope_dimensions);
  const auto context = static_cast<double>(config.rope_original_context);
  const double low =
      std::max(0.0, std::floor(pair_turning(fast_rotations, dimensions, config.rope_base, context)));
  const double high = std::min(
      dimensions - 1.0, std::ceil(pair_turning(slow_rotations, dimensions, config.rope_base, context)));
  return 1.0 - std::clamp((static_cast<double>(i) - low) / std::max(high - low, 0.001), 0.0, 1.0);
}

}  // namespace

Rope::Rope(const ModelConfig& config, std::span<const float> factors) {
  const std::int64_t pairs = config.rope_dimensions / 2;
  SHOAL_CHECK(light, factors.empty() || static_cast<std::int64_t>(factors.size()) == pairs);
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(config.rope_dimensions);
    double frequency = std::pow(static_cast<double>(config.rope_base), exponent);
    if (!factors.empty()) frequency /= factors[static_cast<std::size_t>(i)];
    const double interpolated = frequency / config.rope_scale;
    if (config.rope_scaling == RopeScaling::linear) frequency = interpolated;
    if (config.rope_scaling == RopeScaling::yarn) {
      const double kept = yarn_ramp(i, config);
      frequency = interpolated * (1.0 - kept) + frequency * kept;
    }
    frequencies_.push_back(frequency);
  }
  // Attention temperature (eq. 22): sqrt(1/t) on queries and keys alike.
  if (config.rope_scaling == RopeScaling::yarn) magnitude_ = 1.0 + 0.1 * std::log(double{config.rope_scale});
}

void Rope::angles(std::int64_t position, std::span<float> cosine, std::span<float> sine) const {
  for (std::size_t i = 0; i < frequencies_.size(); ++i) {
    const double angle = static_cast<double>(position) * frequencies_[i];
    cosine[i] = static_cast<float>(std::cos(angle) * magnitude_);
    sine[i] = static_cast<float>(std::sin(angle) * magnitude_);
  }
}

void Rope::rotate(std::span<float> x, std::int64_t head_width, std::span<const float> cosine,
                  std::span<const float> sine) {
  const auto stride = static_cast<std::size_t>(head_width);
  for (std::size_t head = 0; head < x.size(); head += stride)
    for (std::size_t i = 0; i < cosine.size(); ++i) {
      float& even = x[head + 2 * i];
      float& odd = x[head + 2 * i + 1];
      const float rotated = even * cosine[i] - odd * sine[i];
      odd = even * sine[i] + odd * cosine[i];
      even = rotated;
    }
}

}  // namespace shoal::infer
