// SPDX-License-Identifier: Apache-2.0
// Loading a shard: one layout of its tensors in memory, then pieces of them read by all threads.
#include "shoal/infer/weights.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <utility>

#include "infer/byte_math.h"
#include "infer/tensor_names.h"
#include "shoal/base/check.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

using tensor::Matrix;

// Large enough for full speed of a disk, small enough that threads end together and progress moves.
constexpr std::uint64_t piece_bytes = 4u << 20;

/// A part of a tensor's bytes in the file, and where it goes.
struct Piece {
  const TensorInfo* tensor;
  std::uint64_t begin;
  std::uint64_t bytes;
  std::byte* to;
};

/// The places of the shard's tensors in one block of memory.
class ShardMemory {
 public:
  ShardMemory(const ModelFile& file, const std::vector<std::string>& names) {
    std::uint64_t end = 0;
    for (const std::string& name : names) {
      const TensorInfo& tensor = file.tensor(name);
      places_.emplace(name, Place{&tensor, end});
      end = checked_add(end, held_bytes(tensor));
    }
    memory_ = AnonymousMemory(end, "the weights of this PE");
  }

  std::vector<Piece> pieces() const {
    std::vector<Piece> pieces;
    for (const auto& [name, place] : places_) {
      const TensorInfo& tensor = *place.tensor;
      std::byte* to = memory_.data() + place.offset;
      for (std::uint64_t begin = 0; begin < tensor.bytes; begin += piece_bytes)
        pieces.push_back({&tensor, begin, std::min(piece_bytes, tensor.bytes - begin), to + begin});
    }
    // In file order: disks and networks read ahead.
    std::ranges::sort(pieces, {},
                      [](const Piece& p) { return std::pair(p.tensor->file, p.tensor->offset + p.begin); });
    return pieces;
  }

  Matrix matrix(const std::string& name) const {
    const Place& place = places_.at(name);
    return {place.tensor->format, place.tensor->rows(), place.tensor->columns(),
            memory_.data() + place.offset};
  }

  /// Vectors are F32 in the file: read_config() has checked that.
  std::span<const float> vector(const std::string& name) const {
    const Place& place = places_.at(name);
    return {reinterpret_cast<const float*>(memory_.data() + place.offset),
            static_cast<std::size_t>(place.tensor->columns())};
  }

  bool holds(const std::string& name) const { return places_.contains(name); }
  AnonymousMemory take() { return std::move(memory_); }

 private:
  struct Place {
    const TensorInfo* tensor;
    std::uint64_t offset;
  };
  std::map<std::string, Place> places_;
  AnonymousMemory memory_;
};

/// Members take the next piece as they get free; the first failure stops all and is thrown here.
void read_pieces(const ModelFile& file, const std::vector<Piece>& pieces, ThreadTeam& team,
                 const LoadProgress& progress) {
  std::uint64_t bytes_total = 0;
  for (const Piece& piece : pieces) bytes_total += piece.bytes;
  std::atomic<std::size_t> next = 0;
  std::atomic<std::uint64_t> bytes_done = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr failure;  // written by the one member that set `failed`
  team.run([&](int member) {
    try {
      for (std::size_t i = next++; i < pieces.size() && !failed; i = next++) {
        file.read(*pieces[i].tensor, pieces[i].begin, {pieces[i].to, pieces[i].bytes});
        bytes_done += pieces[i].bytes;
        if (member == 0 && progress) progress(bytes_done, bytes_total);
      }
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
  if (progress) progress(bytes_total, bytes_total);
}

LayerWeights layer_weights(const ShardMemory& memory, std::int64_t layer) {
  const auto matrix = [&](std::string_view part) { return memory.matrix(layer_tensor_name(layer, part)); };
  const auto vector = [&](std::string_view part) { return memory.vector(layer_tensor_name(layer, part)); };
  return {.attention_norm = vector("attn_norm.weight"),
          .q = matrix("attn_q.weight"),
          .k = matrix("attn_k.weight"),
          .v = matrix("attn_v.weight"),
          .o = matrix("attn_output.weight"),
          .ffn_norm = vector("ffn_norm.weight"),
          .gate = matrix("ffn_gate.weight"),
          .up = matrix("ffn_up.weight"),
          .down = matrix("ffn_down.weight")};
}

}  // namespace

std::uint64_t held_bytes(const TensorInfo& tensor) { return align_up(tensor.bytes); }

std::vector<std::string> shard_tensors(const ModelFile& file, const ModelConfig& config, const PePlan& pe) {
  std::vector<std::string> names;
  const bool needs_table = pe.has_embedding || (pe.has_output && config.tied_output);
  if (needs_table) names.emplace_back(embedding_name);
  for (std::int64_t layer = pe.layer_begin; layer < pe.layer_end; ++layer)
    for (const std::string_view part : layer_parts) names.push_back(layer_tensor_name(layer, part));
  if (pe.layers() > 0 && file.find(rope_factors_name) != nullptr) names.emplace_back(rope_factors_name);
  if (pe.has_output) names.emplace_back(output_norm_name);
  if (pe.has_output && !config.tied_output) names.emplace_back(output_name);
  return names;
}

Weights load_weights(const ModelFile& file, const ModelConfig& config, const Plan& plan, int pe,
                     ThreadTeam& team, const LoadProgress& progress) {
  SHOAL_CHECK(light, pe >= 0 && static_cast<std::size_t>(pe) < plan.pes.size());
  const PePlan& mine = plan.pes[static_cast<std::size_t>(pe)];
  ShardMemory memory(file, shard_tensors(file, config, mine));
  read_pieces(file, memory.pieces(), team, progress);

  Weights weights;
  for (std::int64_t layer = mine.layer_begin; layer < mine.layer_end; ++layer)
    weights.layers.push_back(layer_weights(memory, layer));
  if (mine.has_embedding) weights.embedding = memory.matrix(std::string(embedding_name));
  if (mine.has_output) {
    weights.output_norm = memory.vector(std::string(output_norm_name));
    weights.output = memory.matrix(std::string(config.tied_output ? embedding_name : output_name));
  }
  if (memory.holds(std::string(rope_factors_name)))
    weights.rope_factors = memory.vector(std::string(rope_factors_name));
  weights.memory = memory.take();
  return weights;
}

}  // namespace shoal::infer
