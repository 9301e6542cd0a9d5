// SPDX-License-Identifier: Apache-2.0
// A whole model in one process: the stages of a plan, each with its own weights and cache, one after
// the other, as the engine runs them on as many PEs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "infer/model_fixture.h"
#include "shoal/base/thread_team.h"
#include "shoal/infer/kv_cache.h"
#include "shoal/infer/plan.h"
#include "shoal/infer/stage.h"
#include "shoal/infer/weights.h"

namespace shoal::infer::test {

class StageChain {
 public:
  StageChain(const OpenModel& model, const PlanOptions& options,
             const tensor::KernelSet& kernels = tensor::default_kernels())
      : config_(model.config), plan_(make_plan(model.file, model.config, options)), team_(options.threads) {
    for (const PePlan& pe : plan_.pes) pes_.push_back(std::make_unique<Pe>(model, plan_, pe, kernels, team_));
  }

  /// Logits (vocabulary) after each token, or after the last one alone; the tokens travel in chunks.
  std::vector<std::vector<float>> run(std::span<const Token> tokens, bool all = true) {
    std::vector<std::vector<float>> logits;
    const auto width = static_cast<std::size_t>(config_.width);
    const auto chunk = static_cast<std::size_t>(plan_.options.chunk_tokens);
    for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
      const std::size_t count = std::min(chunk, tokens.size() - begin);
      std::vector<float> hidden(count * width);
      pes_[0]->stage.embed(tokens.subspan(begin, count), hidden);
      for (const int pe : plan_.pipeline) pes_[static_cast<std::size_t>(pe)]->stage.layers(hidden, position_);
      position_ += static_cast<std::int64_t>(count);
      for (std::size_t t = all ? 0 : count - 1; t < count; ++t) {
        logits.emplace_back(static_cast<std::size_t>(config_.vocabulary));
        pes_[static_cast<std::size_t>(plan_.output_pe)]->stage.logits(
            std::span(hidden).subspan(t * width, width), logits.back());
      }
    }
    return logits;
  }

  void truncate(std::int64_t length) {
    for (const auto& pe : pes_) pe->kv.truncate(pe->kv.layers() > 0 ? length : 0);
    position_ = length;
  }

  const Plan& plan() const { return plan_; }
  Stage& stage(std::size_t pe) { return pes_[pe]->stage; }
  const Weights& weights(std::size_t pe) const { return pes_[pe]->weights; }
  const KvCache& kv(std::size_t pe) const { return pes_[pe]->kv; }

 private:
  struct Pe {
    Pe(const OpenModel& model, const Plan& plan, const PePlan& pe, const tensor::KernelSet& kernels,
       ThreadTeam& team)
        : weights(load_weights(model.file, model.config, plan, pe.pe, team)),
          kv(model.config, pe.layers(), plan.options.context, plan.options.kv_format),
          stage(model.config, weights, kv, kernels, team, plan.options.chunk_tokens) {}
    Weights weights;
    KvCache kv;
    Stage stage;
  };

  const ModelConfig& config_;
  Plan plan_;
  ThreadTeam team_;
  std::vector<std::unique_ptr<Pe>> pes_;
  std::int64_t position_ = 0;
};

}  // namespace shoal::infer::test
