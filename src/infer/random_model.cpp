// SPDX-License-Identifier: Apache-2.0
// Random weights fast: a matrix is put together from a pool of random encoded chunks, so that its cost is
// that of copying. Each row draws its own chunks, so rows differ and no two logits are equal.
#include "shoal/infer/random_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numbers>

#include <fmt/format.h>

#include "infer/random_vocabulary.h"
#include "shoal/base/error.h"
#include "shoal/base/random_bits.h"

namespace shoal::infer {
namespace {

/// The same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    const std::uint64_t bits = next_bits(state_);
    state_ += golden_step;
    return bits;
  }
  /// Irwin-Hall: mean 0, standard deviation 1, and exact arithmetic but for one product, so that no
  /// difference between mathematical libraries shows.
  float normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(next() >> 11) * 0x1p-53;
    return static_cast<float>(sum);
  }

 private:
  std::uint64_t state_;
};

std::uint64_t hash_text(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = Random(seed).next();
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// Encoded chunks of normally distributed numbers of standard deviation 1 / sqrt(columns), which keeps the
/// size of what a matrix of that many columns is multiplied with.
class Pool {
 public:
  Pool(tensor::Format format, std::int64_t columns, std::uint64_t seed)
      : format_(format), columns_(columns), chunk_bytes_(tensor::row_bytes(format, chunk_elements())) {
    Random random(seed);
    std::vector<float> values(static_cast<std::size_t>(chunk_elements()));
    const float scale = 1.0f / std::sqrt(static_cast<float>(columns));
    data_.resize(static_cast<std::size_t>(chunk_bytes_) * chunks);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      for (float& value : values) value = scale * random.normal();
      tensor::quantize(format, values, data_.data() + chunk * static_cast<std::size_t>(chunk_bytes_));
    }
  }

  std::int64_t row_bytes() const { return tensor::row_bytes(format_, columns_); }

  void fill_row(std::uint64_t seed, std::span<std::byte> row) const {
    Random random(seed);
    for (std::size_t begin = 0; begin < row.size();) {
      const std::size_t chunk = random.next() % chunks;
      const std::size_t bytes = std::min(static_cast<std::size_t>(chunk_bytes_), row.size() - begin);
      std::memcpy(row.data() + begin, data_.data() + chunk * static_cast<std::size_t>(chunk_bytes_), bytes);
      begin += bytes;
    }
  }

 private:
  static constexpr std::size_t chunks = 4096;
  /// One block; a few elements of the plain formats, so that small rows differ in more than their order.
  std::int64_t chunk_elements() const {
    return std::max<std::int64_t>(tensor::traits(format_).block_elements, 8);
  }

  tensor::Format format_;
  std::int64_t columns_;
  std::int64_t chunk_bytes_;
  std::vector<std::byte> data_;
};

void require(bool condition, const std::string& message) {
  if (!condition) fail(ErrorCode::invalid_argument, "random model: " + message);
}

class Builder {
 public:
  explicit Builder(const RandomModelOptions& options) : o_(options) {
    check();
    head_width_ = o_.head_width > 0 ? o_.head_width : o_.width / o_.heads;
  }

  GgufWriter build() {
    metadata();
    matrix("token_embd.weight", o_.width, o_.vocabulary, o_.format, "token_embd.weight");
    for (std::int64_t layer = 0; layer < o_.layers; ++layer) add_layer(layer);
    norm("output_norm.weight");
    const tensor::Format output_format = o_.output_format.value_or(o_.format);
    if (o_.output == OutputMatrix::own)
      matrix("output.weight", o_.width, o_.vocabulary, output_format, "output.weight");
    if (o_.output == OutputMatrix::copy_of_embedding)
      matrix("output.weight", o_.width, o_.vocabulary, o_.format, "token_embd.weight");
    if (!o_.rope_freqs.empty())
      writer_.add_tensor("rope_freqs.weight", {static_cast<std::int64_t>(o_.rope_freqs.size())},
                         tensor::Format::f32, o_.rope_freqs);
    return std::move(writer_);
  }

 private:
  void check() const {
    const std::int64_t least =
        std::min({o_.layers, o_.width, o_.ffn_width, o_.heads, o_.kv_heads, o_.context});
    require(least > 0 && o_.head_width >= 0,
            "layers, width, FFN width, heads, KV heads and context must be positive");
    require(o_.heads % o_.kv_heads == 0,
            fmt::format("{} KV heads do not divide {} heads", o_.kv_heads, o_.heads));
    require(o_.head_width > 0 || o_.width % o_.heads == 0,
            fmt::format("{} heads do not divide the width {}", o_.heads, o_.width));
    require((o_.head_width > 0 ? o_.head_width : o_.width / o_.heads) % 2 == 0,
            "the width of a head must be even");
    require(o_.vocabulary >= min_random_vocabulary,
            fmt::format("a vocabulary of {} is too small, at least {} are needed", o_.vocabulary,
                        min_random_vocabulary));
    require(o_.files >= 1, "at least one file must be written");
  }

  void metadata() {
    const auto size = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
    writer_.set("general.architecture", "llama").set("general.name", o_.name);
    writer_.set("llama.context_length", size(o_.context)).set("llama.embedding_length", size(o_.width));
    writer_.set("llama.block_count", size(o_.layers)).set("llama.feed_forward_length", size(o_.ffn_width));
    writer_.set("llama.attention.head_count", size(o_.heads))
        .set("llama.attention.head_count_kv", size(o_.kv_heads));
    if (o_.head_width > 0)
      writer_.set("llama.attention.key_length", size(o_.head_width))
          .set("llama.attention.value_length", size(o_.head_width));
    writer_.set("llama.rope.dimension_count", size(head_width_)).set("llama.rope.freq_base", o_.rope_base);
    writer_.set("llama.attention.layer_norm_rms_epsilon", o_.norm_epsilon);
    writer_.set("llama.vocab_size", size(o_.vocabulary));
    set_random_vocabulary(writer_, o_.vocabulary);
  }

  void add_layer(std::int64_t layer) {
    const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}.weight", layer, part); };
    const auto add = [&](std::string_view part, std::int64_t columns, std::int64_t rows,
                         tensor::Format format) { matrix(name(part), columns, rows, format, name(part)); };
    const tensor::Format finer = o_.more_bits && gets_more_bits(layer) ? tensor::Format::q6_k : o_.format;
    const std::int64_t query_width = o_.heads * head_width_;
    const std::int64_t kv_width = o_.kv_heads * head_width_;
    norm(name("attn_norm"));
    add("attn_q", o_.width, query_width, o_.format);
    add("attn_k", o_.width, kv_width, o_.format);
    add("attn_v", o_.width, kv_width, finer);
    add("attn_output", query_width, o_.width, o_.format);
    norm(name("ffn_norm"));
    add("ffn_gate", o_.width, o_.ffn_width, o_.format);
    add("ffn_up", o_.width, o_.ffn_width, o_.format);
    add("ffn_down", o_.ffn_width, o_.width, finer);
  }

  /// The layers that the mixes "_M" of public files store more finely: the first and last eighth, and
  /// every third between.
  bool gets_more_bits(std::int64_t layer) const {
    const std::int64_t eighth = o_.layers / 8;
    return layer < eighth || layer >= 7 * o_.layers / 8 || (layer - eighth) % 3 == 2;
  }

  /// Around 1, so that a forgotten multiplication by the weight shows.
  void norm(const std::string& name) {
    Random random(hash_text(name, o_.seed));
    std::vector<float> values(static_cast<std::size_t>(o_.width));
    for (float& value : values) value = 1.0f + 0.1f * random.normal();
    writer_.add_tensor(name, {o_.width}, tensor::Format::f32, values);
  }

  void matrix(const std::string& name, std::int64_t columns, std::int64_t rows, tensor::Format format,
              std::string_view seed_name) {
    require(columns % tensor::traits(format).block_elements == 0,
            fmt::format("{} has rows of {}, not a multiple of the {} of a {} block", name, columns,
                        tensor::traits(format).block_elements, tensor::traits(format).name));
    auto& pool = pools_[{format, columns}];
    if (!pool) pool = std::make_shared<const Pool>(format, columns, o_.seed);
    const std::uint64_t seed = hash_text(seed_name, o_.seed);
    writer_.add_tensor(
        name, {columns, rows}, format, [pool, seed](std::uint64_t begin, std::span<std::byte> out) {
          const auto bytes = static_cast<std::size_t>(pool->row_bytes());
          for (std::size_t done = 0; done < out.size(); done += bytes)
            pool->fill_row(seed + (begin + done) / bytes * 0xd1342543de82ef95u, out.subspan(done, bytes));
        });
  }

  const RandomModelOptions& o_;
  std::int64_t head_width_ = 0;
  GgufWriter writer_;
  std::map<std::pair<tensor::Format, std::int64_t>, std::shared_ptr<const Pool>> pools_;
};

}  // namespace

RandomModelOptions random_model_preset(std::string_view name) {
  RandomModelOptions options;
  if (name == "tiny") return options;
  if (name != "tinyllama-1.1b")
    fail(ErrorCode::invalid_argument,
         fmt::format("there is no preset '{}'; presets are: tiny, tinyllama-1.1b", name));
  options.name = "random-tinyllama-1.1b";
  options.layers = 22;
  options.width = 2048;
  options.ffn_width = 5632;
  options.heads = 32;
  options.kv_heads = 4;
  options.vocabulary = 32000;
  options.context = 2048;
  options.format = tensor::Format::q4_0;
  options.output_format = tensor::Format::q6_k;
  return options;
}

GgufWriter random_model(const RandomModelOptions& options) { return Builder(options).build(); }

std::vector<std::string> write_random_model(const std::string& path, const RandomModelOptions& options) {
  const GgufWriter writer = random_model(options);
  if (options.files > 1) return writer.write_split(path, options.files);
  writer.write(path);
  return {path};
}

}  // namespace shoal::infer
