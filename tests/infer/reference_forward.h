// SPDX-License-Identifier: Apache-2.0
// A llama forward pass in double, straight from the formulas and from the file, without any code of the
// library's own pass: what that is compared with.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "shoal/infer/model_config.h"
#include "shoal/infer/model_file.h"
#include "shoal/infer/tokenizer.h"
#include "shoal/tensor/format.h"

namespace shoal::infer::test {

using Vector = std::vector<double>;

class ReferenceModel {
 public:
  ReferenceModel(const ModelFile& file, const ModelConfig& config) : file_(file), c_(config) {
    if (file.find("rope_freqs.weight") != nullptr) factors_ = rows("rope_freqs.weight")[0];
    embedding_ = rows("token_embd.weight");
    output_ = config.tied_output ? embedding_ : rows("output.weight");
    output_norm_ = rows("output_norm.weight")[0];
    for (std::int64_t l = 0; l < config.layers; ++l) {
      const std::string blk = "blk." + std::to_string(l) + ".";
      layers_.push_back({rows(blk + "attn_norm.weight")[0],
                         rows(blk + "ffn_norm.weight")[0],
                         rows(blk + "attn_q.weight"),
                         rows(blk + "attn_k.weight"),
                         rows(blk + "attn_v.weight"),
                         rows(blk + "attn_output.weight"),
                         rows(blk + "ffn_gate.weight"),
                         rows(blk + "ffn_up.weight"),
                         rows(blk + "ffn_down.weight"),
                         {},
                         {}});
    }
  }

  /// Logits after `token` at the next position.
  Vector next(Token token) {
    Vector x = embedding_[static_cast<std::size_t>(token)];
    for (Layer& layer : layers_) {
      add(x, multiply(layer.o, attend(layer, norm(x, layer.attention_norm))));
      const Vector h = norm(x, layer.ffn_norm);
      Vector gate = multiply(layer.gate, h);
      const Vector up = multiply(layer.up, h);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1.0 + std::exp(-gate[i]));
      add(x, multiply(layer.down, gate));
    }
    ++position_;
    return multiply(output_, norm(x, output_norm_));
  }

 private:
  using Rows = std::vector<Vector>;
  struct Layer {
    Vector attention_norm, ffn_norm;
    Rows q, k, v, o, gate, up, down;
    Rows keys, values;  // of the positions so far
  };

  Rows rows(const std::string& name) const {
    const TensorInfo& info = file_.tensor(name);
    std::vector<std::byte> bytes(info.bytes);
    file_.read(info, 0, bytes);
    std::vector<float> values(static_cast<std::size_t>(info.columns()));
    Rows result;
    for (std::int64_t r = 0; r < info.rows(); ++r) {
      tensor::dequantize(info.format, bytes.data() + r * tensor::row_bytes(info.format, info.columns()),
                         values);
      result.emplace_back(values.begin(), values.end());
    }
    return result;
  }

  static void add(Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  static Vector multiply(const Rows& w, const Vector& x) {
    Vector y;
    for (const Vector& row : w) {
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += row[i] * x[i];
      y.push_back(sum);
    }
    return y;
  }

  Vector norm(const Vector& x, const Vector& weight) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + double{c_.norm_epsilon});
    Vector y;
    for (std::size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * scale * weight[i]);
    return y;
  }

  void rotate(Vector& x) const {
    for (std::size_t head = 0; head < x.size(); head += static_cast<std::size_t>(c_.head_width))
      for (std::int64_t pair = 0; pair < c_.rope_dimensions / 2; ++pair) {
        double angle = static_cast<double>(position_) *
                       std::pow(double{c_.rope_base},
                                -2.0 * static_cast<double>(pair) / static_cast<double>(c_.rope_dimensions));
        if (!factors_.empty()) angle /= factors_[static_cast<std::size_t>(pair)];
        double& a = x[head + static_cast<std::size_t>(2 * pair)];
        double& b = x[head + static_cast<std::size_t>(2 * pair + 1)];
        const double rotated = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = rotated;
      }
  }

  Vector attend(Layer& layer, const Vector& h) const {
    Vector q = multiply(layer.q, h);
    layer.keys.push_back(multiply(layer.k, h));
    layer.values.push_back(multiply(layer.v, h));
    rotate(q);
    rotate(layer.keys.back());
    Vector out(q.size(), 0.0);
    const auto width = static_cast<std::size_t>(c_.head_width);
    for (std::size_t head = 0; head < static_cast<std::size_t>(c_.heads); ++head) {
      const std::size_t kv = head / static_cast<std::size_t>(c_.heads / c_.kv_heads) * width;
      Vector weights;
      double sum = 0;
      for (const Vector& key : layer.keys) {
        double score = 0;
        for (std::size_t i = 0; i < width; ++i) score += q[head * width + i] * key[kv + i];
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
        sum += weights.back();
      }
      for (std::size_t p = 0; p < weights.size(); ++p)
        for (std::size_t i = 0; i < width; ++i)
          out[head * width + i] += weights[p] / sum * layer.values[p][kv + i];
    }
    return out;
  }

  const ModelFile& file_;
  const ModelConfig& c_;
  Vector factors_, output_norm_;
  Rows embedding_, output_;
  std::vector<Layer> layers_;
  std::int64_t position_ = 0;
};

}  // namespace shoal::infer::test
