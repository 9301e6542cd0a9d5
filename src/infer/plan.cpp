// SPDX-License-Identifier: Apache-2.0
// From headers and options to a plan: weigh the parts, partition, account.
#include "shoal/infer/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "infer/byte_math.h"
#include "infer/partition.h"
#include "infer/segment_layout.h"
#include "infer/tensor_names.h"
#include "shoal/base/check.h"
#include "shoal/base/error.h"
#include "shoal/base/format_bytes.h"
#include "shoal/infer/stage.h"
#include "shoal/infer/weights.h"

namespace shoal::infer {
namespace {

constexpr int most_pes = 1 << 20;
constexpr std::int64_t most_chunk_tokens = 1 << 16;
constexpr int most_threads = 1 << 14;

[[noreturn]] void refuse(const std::string& message) { fail(ErrorCode::invalid_argument, message); }

void check_per_pe(const char* option, std::size_t size, int pes) {
  if (size != static_cast<std::size_t>(pes))
    refuse(fmt::format("{} has {} values for {} PEs: give one per PE", option, size, pes));
}

void check_options(const PlanOptions& o) {
  if (o.pes < 1 || o.pes > most_pes)
    refuse(fmt::format("the number of PEs must be from 1 to {}, not {}", most_pes, o.pes));
  if (o.context < 1) refuse(fmt::format("the context must have at least 1 position, not {}", o.context));
  if (o.chunk_tokens < 1 || o.chunk_tokens > most_chunk_tokens)
    refuse(fmt::format("a chunk must have from 1 to {} tokens, not {}", most_chunk_tokens, o.chunk_tokens));
  if (o.threads < 1 || o.threads > most_threads)
    refuse(fmt::format("the number of threads must be from 1 to {}, not {}", most_threads, o.threads));
  if (o.memory.size() > 1) check_per_pe("--memory", o.memory.size(), o.pes);
  if (!o.memory.empty() && o.memory[0] == 0)
    refuse("--memory must not be 0 for PE 0, which holds the token embedding");
  if (o.shares.empty()) return;
  check_per_pe("the list of shares", o.shares.size(), o.pes);
  for (const double share : o.shares)
    if (!(share >= 0) || std::isinf(share))
      refuse(fmt::format("a share must be 0 or positive, not {}", share));
  if (std::ranges::all_of(o.shares, [](double share) { return share == 0; }))
    refuse("at least one share must be positive");
}

/// Sizes of the parts of one model under one set of options; the one place where they are computed.
class Sizes {
 public:
  Sizes(const ModelFile& file, const ModelConfig& config, const PlanOptions& options)
      : file_(file), config_(config), options_(options) {
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      std::uint64_t bytes = 0;
      for (const std::string_view part : layer_parts)
        bytes = checked_add(bytes, tensor(layer_tensor_name(layer, part)));
      layer_weights_.push_back(bytes);
    }
    if (file.find(rope_factors_name) != nullptr) stage_weights_ = tensor(rope_factors_name);
    embedding_weights_ = tensor(embedding_name);
    output_weights_ = tensor(output_norm_name) + (config.tied_output ? 0 : tensor(output_name));
    kv_layer_ = kv_layer_bytes(config, options.context, options.kv_format);
  }

  std::uint64_t weights(const PePlan& pe) const {
    std::uint64_t bytes = pe.layers() > 0 ? stage_weights_ : 0;
    for (std::int64_t layer = pe.layer_begin; layer < pe.layer_end; ++layer)
      bytes += layer_weights_[static_cast<std::size_t>(layer)];
    if (pe.has_embedding) bytes += embedding_weights_;
    if (pe.has_output) bytes += output_weights_;
    return bytes;
  }

  std::uint64_t kv(const PePlan& pe) const { return static_cast<std::uint64_t>(pe.layers()) * kv_layer_; }

  std::uint64_t scratch(bool has_layers, bool has_output) const {
    // The chunk's hidden states; logits and the sampler's candidates.
    std::uint64_t bytes = align_up(checked_product({options_.chunk_tokens, config_.width, 4}));
    if (has_output) bytes = checked_add(bytes, checked_product({config_.vocabulary, 4 + 8}));
    return checked_add(bytes, stage_scratch_bytes(config_, has_layers ? 1 : 0, has_output,
                                                  options_.chunk_tokens, options_.context, options_.threads));
  }

  std::uint64_t segments(int pes) const { return symmetric_bytes(pes, options_.chunk_tokens, config_.width); }

  /// In the partition's terms. What the output adds to the scratch does not depend on the layers.
  PipelineCosts costs(int pes) const {
    PipelineCosts costs;
    for (const std::uint64_t weights : layer_weights_)
      costs.layers.push_back(checked_add(weights, kv_layer_));
    const bool tied = config_.tied_output;
    costs.every = segments(pes);
    costs.stage = stage_weights_ + scratch(true, false);
    costs.first = embedding_weights_ + (tied ? output_weights_ : 0) + scratch(false, tied);
    costs.first_stage = stage_weights_ + scratch(true, tied) - scratch(false, tied);
    costs.last = tied ? 0 : output_weights_ + scratch(true, true) - scratch(true, false);
    return costs;
  }

 private:
  std::uint64_t tensor(std::string_view name) const { return held_bytes(file_.tensor(name)); }

  const ModelFile& file_;
  const ModelConfig& config_;
  const PlanOptions& options_;
  std::vector<std::uint64_t> layer_weights_;
  std::uint64_t stage_weights_ = 0;
  std::uint64_t embedding_weights_ = 0;
  std::uint64_t output_weights_ = 0;
  std::uint64_t kv_layer_ = 0;
};

std::vector<PeCapacity> capacities(const PlanOptions& options) {
  std::vector<PeCapacity> pes(static_cast<std::size_t>(options.pes));
  for (std::size_t i = 0; i < pes.size(); ++i) {
    if (!options.memory.empty()) {
      const std::uint64_t memory = options.memory[options.memory.size() == 1 ? 0 : i];
      pes[i].share = static_cast<double>(memory);
      if (memory > 0) pes[i].limit = memory;
    }
    if (!options.shares.empty())
      pes[i].share = options.memory.size() > 1 && options.memory[i] == 0 ? 0 : options.shares[i];
  }
  return pes;
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// "it would fit on 3 PEs", or why no number of PEs is enough when each has `memory`.
std::string way_out(const Sizes& sizes, const ModelConfig& config, std::uint64_t memory) {
  // More PEs than one for the embedding and one for each layer cannot hold more.
  for (std::int64_t pes = 1; pes <= config.layers + 1; ++pes)
    if (fits(PipelineLoads(sizes.costs(static_cast<int>(pes))), pes, memory))
      return fmt::format("it would fit on {} PE{}", pes, pes == 1 ? "" : "s");
  const PipelineLoads two(sizes.costs(2));
  if (const std::uint64_t bytes = two.load(0, 0, 0); bytes > memory)
    return fmt::format(
        "it fits on no number of PEs, because the {} alone needs {}",
        config.tied_output ? "token embedding, which is the output matrix too," : "token embedding",
        format_bytes(bytes));
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    if (const std::uint64_t bytes = two.load(1, layer, 1); bytes > memory)
      return fmt::format("it fits on no number of PEs, because layer {} with its KV cache{} alone needs {}",
                         layer, layer + 1 == config.layers && !config.tied_output ? " and the output" : "",
                         format_bytes(bytes));
  return "it fits on no number of PEs, because the communication segments grow with it: use smaller chunks";
}

[[noreturn]] void report_misfit(const ModelFile& file, const ModelConfig& config, const PlanOptions& options,
                                const Sizes& sizes, const PipelineLoads& loads, std::vector<PeCapacity> pes) {
  std::vector<std::uint64_t> limits;
  for (PeCapacity& pe : pes) {
    limits.push_back(pe.limit);
    pe.limit = PeCapacity{}.limit;
  }
  const std::vector<std::int64_t> counts = partition(loads, pes);
  std::uint64_t short_by = 0;
  std::uint64_t needed = 0;
  std::uint64_t all_needed = 0;
  std::size_t fullest = 0;
  std::int64_t begin = 0;
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    const std::uint64_t load = loads.load(static_cast<std::int64_t>(pe), begin, counts[pe]);
    begin += counts[pe];
    all_needed = checked_add(all_needed, load);
    if (load <= limits[pe] || load - limits[pe] <= short_by) continue;
    short_by = load - limits[pe];
    needed = load;
    fullest = pe;
  }
  std::string message = fmt::format(
      "model {} needs {} on the fullest PE, {}, but --memory gives {}: short by {}; ", file_name(file.path()),
      format_bytes(needed), fullest, format_bytes(limits[fullest]), format_bytes(short_by));
  if (options.memory.size() == 1)
    message += way_out(sizes, config, options.memory[0]);
  else
    message += fmt::format("all {} PEs together need {}", options.pes, format_bytes(all_needed));
  fail(ErrorCode::out_of_memory, message);
}

std::vector<PePlan> assign(const std::vector<std::int64_t>& counts, const ModelConfig& config,
                           const Sizes& sizes, int output_pe) {
  std::vector<PePlan> pes;
  std::int64_t begin = 0;
  for (const std::int64_t count : counts) {
    PePlan pe;
    pe.pe = static_cast<int>(pes.size());
    pe.layer_begin = begin;
    pe.layer_end = begin += count;
    pe.has_embedding = pe.pe == 0;
    pe.has_output = pe.pe == output_pe;
    pe.weight_bytes = sizes.weights(pe);
    pe.kv_bytes = sizes.kv(pe);
    pe.scratch_bytes = pe.idle() ? 0 : sizes.scratch(count > 0, pe.has_output);
    pe.segment_bytes = sizes.segments(static_cast<int>(counts.size()));
    pes.push_back(pe);
  }
  SHOAL_CHECK_EQ(begin, config.layers);
  return pes;
}

std::vector<std::string> notes(const Plan& plan) {
  std::vector<std::string> notes;
  if (plan.config.tied_output) {
    notes.emplace_back(
        "The output matrix is the embedding table (tied): PE 0 holds it once and computes the logits.");
    if (plan.pipeline.size() > 1)
      notes.push_back(fmt::format("PE {} sends the last hidden state back to PE 0.", plan.pipeline.back()));
  }
  if (plan.pes[0].layers() == 0)
    notes.emplace_back(
        "PE 0 holds the embedding and no layers: that keeps the fullest PE smallest, or was asked.");
  const auto idle = std::ranges::count_if(plan.pes, &PePlan::idle);
  if (idle > 0)
    notes.push_back(fmt::format("{} PE{} idle: no layers are left for {}.", idle, idle == 1 ? " is" : "s are",
                                idle == 1 ? "it" : "them"));
  return notes;
}

}  // namespace

Plan make_plan(const ModelFile& file, const ModelConfig& config, const PlanOptions& options) {
  Plan plan;
  plan.model = file.path();
  plan.config = config;
  plan.options = options;
  if (options.context == 0) plan.options.context = config.context;
  check_options(plan.options);

  const Sizes sizes(file, config, plan.options);
  const PipelineLoads loads(sizes.costs(options.pes));
  const std::vector<PeCapacity> capacity = capacities(plan.options);
  const std::vector<std::int64_t> counts = partition(loads, capacity);
  if (counts.empty()) report_misfit(file, config, plan.options, sizes, loads, capacity);

  const auto last = std::ranges::find_if(counts.rbegin(), counts.rend(), [](auto n) { return n > 0; });
  plan.output_pe = config.tied_output ? 0 : static_cast<int>(counts.rend() - last) - 1;
  plan.pes = assign(counts, config, sizes, plan.output_pe);
  for (const PePlan& pe : plan.pes) {
    SHOAL_CHECK_EQ(pe.total_bytes(), loads.load(pe.pe, pe.layer_begin, pe.layers()));
    if (pe.pe == 0 || pe.layers() > 0) plan.pipeline.push_back(pe.pe);
  }
  plan.notes = notes(plan);
  return plan;
}

std::uint64_t segment_bytes(std::int64_t chunk_tokens, std::int64_t width) {
  return 2 * HalfLayout(chunk_tokens, width).bytes;
}

}  // namespace shoal::infer
