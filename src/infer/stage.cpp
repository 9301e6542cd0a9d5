// SPDX-License-Identifier: Apache-2.0
// The forward pass. Activations are (tokens, features), row-major; T stands for the tokens of a chunk.
#include "shoal/infer/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <vector>

#include "infer/byte_math.h"
#include "infer/rope.h"
#include "shoal/base/check.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

using tensor::Format;
using tensor::KernelSet;
using tensor::Matrix;

// Members get rows in multiples of a cache line of floats, so that no two write the same line and
// element-wise kernels see slices that begin at a whole vector.
constexpr std::int64_t row_granule = 16;

struct Range {
  std::int64_t begin, end;
};

/// The part of `member` of `members` in [0, total), in multiples of `granule`.
Range split(std::int64_t total, std::int64_t granule, int member, int members) {
  const std::int64_t granules = (total + granule - 1) / granule;
  return {std::min(total, granules * member / members * granule),
          std::min(total, granules * (member + 1) / members * granule)};
}

std::span<float> row(float* rows, std::int64_t index, std::int64_t columns) {
  return {rows + index * columns, static_cast<std::size_t>(columns)};
}
std::span<const float> row(const float* rows, std::int64_t index, std::int64_t columns) {
  return {rows + index * columns, static_cast<std::size_t>(columns)};
}

/// No kernel set prepares a row into more than its floats, rounded up to whole cache lines.
std::int64_t prepared_bound(std::int64_t columns) {
  return static_cast<std::int64_t>(align_up(checked_product({columns, 4})) + memory_alignment);
}

struct ScratchSizes {
  std::int64_t layers, tokens, positions, threads;
  std::int64_t prepared_bytes;  // per token, of the largest group of products that share an input
};

struct Scratch {
  float* normed;        // (T, width): a block's input after RMSNorm
  float* q;             // (T, heads, head_width)
  float* k;             // (T, kv_heads, head_width)
  float* v;             // (T, kv_heads, head_width)
  float* attended;      // (T, heads, head_width)
  float* gate;          // (T, ffn_width)
  float* up;            // (T, ffn_width)
  float* projected;     // (T, width): what a block adds to the hidden state
  float* cosine;        // (T, rope_dimensions / 2)
  float* sine;          // (T, rope_dimensions / 2)
  float* scores;        // (threads, positions): attention of one head of one token
  std::byte* prepared;  // (T, columns) inputs in the form of the weights, one after the other per format
};

/// Gives each array its place in `memory` (null to measure) and returns the bytes of all.
std::uint64_t lay_out(const ModelConfig& config, const ScratchSizes& sizes, std::byte* memory,
                      Scratch& scratch) {
  std::uint64_t end = 0;
  const auto take = [&](std::uint64_t bytes) {
    std::byte* place = memory == nullptr ? nullptr : memory + end;
    end = checked_add(end, align_up(bytes));
    return place;
  };
  const auto floats = [&](std::int64_t rows, std::int64_t columns) {
    return reinterpret_cast<float*>(take(checked_product({rows, columns, 4})));
  };
  scratch.normed = floats(sizes.tokens, config.width);
  scratch.prepared = take(checked_product({sizes.tokens, sizes.prepared_bytes}));
  if (sizes.layers == 0) return end;  // the output alone needs no more
  scratch.q = floats(sizes.tokens, config.query_width());
  scratch.k = floats(sizes.tokens, config.kv_width());
  scratch.v = floats(sizes.tokens, config.kv_width());
  scratch.attended = floats(sizes.tokens, config.query_width());
  scratch.gate = floats(sizes.tokens, config.ffn_width);
  scratch.up = floats(sizes.tokens, config.ffn_width);
  scratch.projected = floats(sizes.tokens, config.width);
  scratch.cosine = floats(sizes.tokens, config.rope_dimensions / 2);
  scratch.sine = floats(sizes.tokens, config.rope_dimensions / 2);
  scratch.scores =
      floats(sizes.threads, static_cast<std::int64_t>(align_up(checked_product({sizes.positions, 4})) / 4));
  return end;
}

/// Per token, the prepared inputs of matrices that share one: a copy for each of their formats.
std::int64_t prepared_bytes(const KernelSet& kernels, std::initializer_list<const Matrix*> group) {
  std::vector<Format> seen;
  std::int64_t bytes = 0;
  for (const Matrix* w : group) {
    if (std::ranges::find(seen, w->format) != seen.end()) continue;
    seen.push_back(w->format);
    bytes += kernels.prepared_bytes(w->format, w->columns);
  }
  return bytes;
}

std::int64_t largest_prepared_bytes(const KernelSet& kernels, const Weights& weights) {
  std::int64_t bytes = weights.output.rows > 0 ? prepared_bytes(kernels, {&weights.output}) : 0;
  for (const LayerWeights& w : weights.layers)
    bytes = std::max({bytes, prepared_bytes(kernels, {&w.q, &w.k, &w.v}), prepared_bytes(kernels, {&w.o}),
                      prepared_bytes(kernels, {&w.gate, &w.up}), prepared_bytes(kernels, {&w.down})});
  return bytes;
}

}  // namespace

std::uint64_t stage_scratch_bytes(const ModelConfig& config, std::int64_t layers, bool has_output,
                                  std::int64_t max_chunk_tokens, std::int64_t positions, int threads) {
  if (layers == 0 && !has_output) return 0;
  ScratchSizes sizes{layers, layers > 0 ? max_chunk_tokens : 1, positions, threads,
                     prepared_bound(config.width)};
  if (layers > 0)
    sizes.prepared_bytes = std::max({3 * prepared_bound(config.width), prepared_bound(config.query_width()),
                                     prepared_bound(config.ffn_width)});
  Scratch scratch{};
  return lay_out(config, sizes, nullptr, scratch);
}

class Stage::Forward {
 public:
  Forward(const ModelConfig& config, const Weights& weights, KvCache& kv, const KernelSet& kernels,
          ThreadTeam& team, std::int64_t max_chunk_tokens);

  void embed(std::span<const Token> tokens, std::span<float> hidden) const;
  void layers(std::span<float> hidden, std::int64_t position);
  void logits(std::span<const float> hidden, std::span<float> logits);

  const std::int64_t max_tokens;
  std::uint64_t scratch_bytes() const { return memory_.size(); }

 private:
  /// y (T, w->rows) = x (T, w->columns) times w transposed.
  struct Product {
    const Matrix* w;
    float* y;
  };
  using PreparedRows = std::array<const std::byte*, 3>;  // of each product of a group

  std::int64_t check_chunk(std::span<const float> hidden, std::int64_t position) const;
  void attention(std::int64_t layer, float* hidden, std::int64_t tokens, std::int64_t position);
  void feed_forward(std::int64_t layer, float* hidden, std::int64_t tokens);

  void attend(std::int64_t layer, std::int64_t tokens, std::int64_t position);
  template <class T>
  void attend_head(std::int64_t layer, std::int64_t head, std::int64_t token, std::span<float> scores);
  float dot(const float* q, const float* k) const { return kernels_.dot_f32(q, k, config_.head_width); }
  float dot(const float* q, const std::uint16_t* k) const {
    return kernels_.dot_f16(q, k, config_.head_width);
  }
  void accumulate(float weight, const float* v, float* out) const {
    kernels_.accumulate_f32(weight, v, out, config_.head_width);
  }
  void accumulate(float weight, const std::uint16_t* v, float* out) const {
    kernels_.accumulate_f16(weight, v, out, config_.head_width);
  }

  void normalize(const float* x, std::span<const float> weight, std::int64_t tokens);
  void multiply(const float* x, std::int64_t tokens, std::initializer_list<Product> products);
  void multiply_gated(const float* x, std::int64_t tokens, Product gate, Product up);
  PreparedRows prepare(const float* x, std::int64_t tokens, std::initializer_list<Product> products);
  void add(float* hidden, const float* y, std::int64_t tokens);

  /// body(token) for each, over the team; a single token is not worth waking it.
  template <class Body>
  void for_each_token(std::int64_t tokens, const Body& body);
  /// body(member) on all members; by reference, so that std::function need not allocate.
  template <class Body>
  void run(const Body& body) {
    team_.run(std::cref(body));
  }

  const ModelConfig& config_;
  const Weights& weights_;
  KvCache& kv_;
  const KernelSet& kernels_;
  ThreadTeam& team_;
  Rope rope_;
  AnonymousMemory memory_;
  Scratch scratch_{};
};

Stage::Forward::Forward(const ModelConfig& config, const Weights& weights, KvCache& kv,
                        const KernelSet& kernels, ThreadTeam& team, std::int64_t max_chunk_tokens)
    : max_tokens(max_chunk_tokens),
      config_(config),
      weights_(weights),
      kv_(kv),
      kernels_(kernels),
      team_(team),
      rope_(config, weights.rope_factors) {
  SHOAL_CHECK(light, max_chunk_tokens >= 1);
  SHOAL_CHECK_EQ(kv.layers(), static_cast<std::int64_t>(weights.layers.size()));
  const std::int64_t own_layers = kv.layers();
  const ScratchSizes sizes{own_layers, own_layers > 0 ? max_chunk_tokens : 1, kv.positions(), team.size(),
                           largest_prepared_bytes(kernels, weights)};
  if (own_layers == 0 && weights.output.rows == 0) return;
  memory_ = AnonymousMemory(lay_out(config, sizes, nullptr, scratch_), "the scratch of the forward pass");
  lay_out(config, sizes, memory_.data(), scratch_);
}

void Stage::Forward::embed(std::span<const Token> tokens, std::span<float> hidden) const {
  const Matrix& table = weights_.embedding;  // (vocabulary, width)
  SHOAL_CHECK(light, table.rows > 0);
  SHOAL_CHECK_EQ(hidden.size(), tokens.size() * static_cast<std::size_t>(config_.width));
  const std::int64_t row_bytes = tensor::row_bytes(table.format, table.columns);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (tokens[t] < 0 || tokens[t] >= table.rows)
      fail(ErrorCode::invalid_argument,
           fmt::format("token id {} is outside the vocabulary of {}", tokens[t], table.rows));
    tensor::dequantize(table.format, table.data + tokens[t] * row_bytes,
                       row(hidden.data(), static_cast<std::int64_t>(t), config_.width));
  }
}

void Stage::Forward::layers(std::span<float> hidden, std::int64_t position) {
  const std::int64_t tokens = check_chunk(hidden, position);
  if (weights_.layers.empty()) return;
  for_each_token(tokens, [&](std::int64_t t) {
    rope_.angles(position + t, row(scratch_.cosine, t, rope_.pairs()), row(scratch_.sine, t, rope_.pairs()));
  });
  for (std::int64_t layer = 0; layer < kv_.layers(); ++layer) {
    attention(layer, hidden.data(), tokens, position);
    feed_forward(layer, hidden.data(), tokens);
  }
  kv_.append(tokens);
}

std::int64_t Stage::Forward::check_chunk(std::span<const float> hidden, std::int64_t position) const {
  const auto size = static_cast<std::int64_t>(hidden.size());
  const std::int64_t tokens = size / config_.width;
  if (tokens * config_.width != size || tokens > max_tokens)
    fail(ErrorCode::invalid_argument, fmt::format("a chunk of {} values is not 0 to {} tokens of width {}",
                                                  size, max_tokens, config_.width));
  if (weights_.layers.empty()) return tokens;
  if (position != kv_.length())
    fail(ErrorCode::invalid_argument,
         fmt::format("a chunk at position {} does not continue the KV cache, which holds {} positions",
                     position, kv_.length()));
  if (tokens > kv_.positions() - position)
    fail(ErrorCode::out_of_memory,
         fmt::format("the context of {} positions is full: {} are used, {} more asked", kv_.positions(),
                     position, tokens));
  return tokens;
}

/// hidden += attention(RMSNorm(hidden))
void Stage::Forward::attention(std::int64_t layer, float* hidden, std::int64_t tokens,
                               std::int64_t position) {
  const LayerWeights& w = weights_.layers[static_cast<std::size_t>(layer)];
  const Scratch& s = scratch_;
  normalize(hidden, w.attention_norm, tokens);
  multiply(s.normed, tokens, {{&w.q, s.q}, {&w.k, s.k}, {&w.v, s.v}});
  for_each_token(tokens, [&](std::int64_t t) {
    const std::span<const float> cosine = row(s.cosine, t, rope_.pairs());
    const std::span<const float> sine = row(s.sine, t, rope_.pairs());
    Rope::rotate(row(s.q, t, config_.query_width()), config_.head_width, cosine, sine);
    Rope::rotate(row(s.k, t, config_.kv_width()), config_.head_width, cosine, sine);
    kv_.store(kernels_, layer, position + t, row(s.k, t, config_.kv_width()),
              row(s.v, t, config_.kv_width()));
  });
  attend(layer, tokens, position);
  multiply(s.attended, tokens, {{&w.o, s.projected}});
  add(hidden, s.projected, tokens);
}

/// hidden += down(silu(gate(RMSNorm(hidden))) * up(RMSNorm(hidden)))
void Stage::Forward::feed_forward(std::int64_t layer, float* hidden, std::int64_t tokens) {
  const LayerWeights& w = weights_.layers[static_cast<std::size_t>(layer)];
  const Scratch& s = scratch_;
  normalize(hidden, w.ffn_norm, tokens);
  multiply_gated(s.normed, tokens, {&w.gate, s.gate}, {&w.up, s.up});
  multiply(s.gate, tokens, {{&w.down, s.projected}});
  add(hidden, s.projected, tokens);
}

void Stage::Forward::logits(std::span<const float> hidden, std::span<float> logits) {
  SHOAL_CHECK(light, weights_.output.rows > 0);
  SHOAL_CHECK_EQ(static_cast<std::int64_t>(hidden.size()), config_.width);
  SHOAL_CHECK_EQ(static_cast<std::int64_t>(logits.size()), weights_.output.rows);
  normalize(hidden.data(), weights_.output_norm, 1);
  multiply(scratch_.normed, 1, {{&weights_.output, logits.data()}});
}

/// attended (T, heads, head_width): causal attention, head h with the keys and values of KV head
/// h / (heads / kv_heads) (Ainslie et al. 2023). Work items are (head, token), heads outermost: a
/// member stays with the same keys and values.
void Stage::Forward::attend(std::int64_t layer, std::int64_t tokens, std::int64_t position) {
  const auto stride =
      static_cast<std::int64_t>(align_up(static_cast<std::uint64_t>(kv_.positions()) * 4) / 4);
  run([&](int member) {
    const Range items = split(config_.heads * tokens, 1, member, team_.size());
    for (std::int64_t item = items.begin; item < items.end; ++item) {
      const std::int64_t token = item % tokens;
      const std::span<float> scores(scratch_.scores + member * stride,
                                    static_cast<std::size_t>(position + token + 1));
      if (kv_.format() == KvFormat::f16)
        attend_head<std::uint16_t>(layer, item / tokens, token, scores);
      else
        attend_head<float>(layer, item / tokens, token, scores);
    }
  });
}

/// softmax(q K^T / sqrt(head_width)) V over the scores.size() positions up to the token's own.
template <class T>
void Stage::Forward::attend_head(std::int64_t layer, std::int64_t head, std::int64_t token,
                                 std::span<float> scores) {
  const std::int64_t head_width = config_.head_width;
  const std::int64_t kv_head = head / (config_.heads / config_.kv_heads);
  const float* q = scratch_.q + (token * config_.heads + head) * head_width;
  const T* keys = kv_.keys<T>(layer, kv_head);      // (positions, head_width)
  const T* values = kv_.values<T>(layer, kv_head);  // (positions, head_width)
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_width));
  for (std::size_t p = 0; p < scores.size(); ++p)
    scores[p] = dot(q, keys + static_cast<std::int64_t>(p) * head_width) * scale;
  kernels_.softmax(scores);
  float* out = scratch_.attended + (token * config_.heads + head) * head_width;
  std::fill_n(out, head_width, 0.0f);
  for (std::size_t p = 0; p < scores.size(); ++p)
    accumulate(scores[p], values + static_cast<std::int64_t>(p) * head_width, out);
}

/// scratch.normed (T, width) = RMSNorm of x (T, width)
void Stage::Forward::normalize(const float* x, std::span<const float> weight, std::int64_t tokens) {
  for_each_token(tokens, [&](std::int64_t t) {
    kernels_.rms_norm(row(x, t, config_.width), weight, config_.norm_epsilon,
                      row(scratch_.normed, t, config_.width));
  });
}

/// All products of one input, in one run of the team.
void Stage::Forward::multiply(const float* x, std::int64_t tokens, std::initializer_list<Product> products) {
  const PreparedRows prepared = prepare(x, tokens, products);
  run([&](int member) {
    std::size_t i = 0;
    for (const auto& [w, y] : products) {
      const Range rows = split(w->rows, row_granule, member, team_.size());
      kernels_.multiply(*w, prepared[i++], tokens, rows.begin, rows.end, y, w->rows);
    }
  });
}

/// gate.y (T, ffn_width) = silu(gate product) * up product; each member finishes the rows it computed.
void Stage::Forward::multiply_gated(const float* x, std::int64_t tokens, Product gate, Product up) {
  const PreparedRows prepared = prepare(x, tokens, {gate, up});
  run([&](int member) {
    const std::int64_t features = gate.w->rows;
    const Range rows = split(features, row_granule, member, team_.size());
    const auto count = static_cast<std::size_t>(rows.end - rows.begin);
    kernels_.multiply(*gate.w, prepared[0], tokens, rows.begin, rows.end, gate.y, features);
    kernels_.multiply(*up.w, prepared[1], tokens, rows.begin, rows.end, up.y, features);
    for (std::int64_t t = 0; t < tokens; ++t)
      kernels_.silu_multiply({gate.y + t * features + rows.begin, count},
                             {up.y + t * features + rows.begin, count});
  });
}

/// x (T, columns) in the form of each weight format among `products`, once per format.
Stage::Forward::PreparedRows Stage::Forward::prepare(const float* x, std::int64_t tokens,
                                                     std::initializer_list<Product> products) {
  PreparedRows prepared{};
  std::byte* end = scratch_.prepared;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const Matrix& w = *products.begin()[i].w;
    for (std::size_t j = 0; j < i && prepared[i] == nullptr; ++j)
      if (products.begin()[j].w->format == w.format) prepared[i] = prepared[j];
    if (prepared[i] != nullptr) continue;
    std::byte* rows = end;
    const std::int64_t stride = kernels_.prepared_bytes(w.format, w.columns);
    for_each_token(
        tokens, [&](std::int64_t t) { kernels_.prepare(w.format, row(x, t, w.columns), rows + t * stride); });
    prepared[i] = rows;
    end += tokens * stride;
  }
  return prepared;
}

void Stage::Forward::add(float* hidden, const float* y, std::int64_t tokens) {
  for_each_token(
      tokens, [&](std::int64_t t) { kernels_.add(row(hidden, t, config_.width), row(y, t, config_.width)); });
}

template <class Body>
void Stage::Forward::for_each_token(std::int64_t tokens, const Body& body) {
  if (tokens == 1) {
    body(0);
    return;
  }
  run([&](int member) {
    const Range mine = split(tokens, 1, member, team_.size());
    for (std::int64_t t = mine.begin; t < mine.end; ++t) body(t);
  });
}

Stage::Stage(const ModelConfig& config, const Weights& weights, KvCache& kv, const KernelSet& kernels,
             ThreadTeam& team, std::int64_t max_chunk_tokens)
    : forward_(std::make_unique<Forward>(config, weights, kv, kernels, team, max_chunk_tokens)) {}
Stage::~Stage() = default;

std::int64_t Stage::max_chunk_tokens() const { return forward_->max_tokens; }
std::uint64_t Stage::scratch_bytes() const { return forward_->scratch_bytes(); }
void Stage::embed(std::span<const Token> tokens, std::span<float> hidden) const {
  forward_->embed(tokens, hidden);
}
void Stage::layers(std::span<float> hidden, std::int64_t position) { forward_->layers(hidden, position); }
void Stage::logits(std::span<const float> hidden, std::span<float> logits) {
  forward_->logits(hidden, logits);
}

}  // namespace shoal::infer
