// SPDX-License-Identifier: Apache-2.0
// A plan as a table for people and as JSON for programs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "shoal/base/format_bytes.h"
#include "shoal/infer/plan.h"

namespace shoal::infer {
namespace {

std::string layers_text(const PePlan& pe) {
  if (pe.layers() == 0) return "-";
  if (pe.layers() == 1) return fmt::format("{} (1)", pe.layer_begin);
  return fmt::format("{}-{} ({})", pe.layer_begin, pe.layer_end - 1, pe.layers());
}

std::string role_text(const PePlan& pe) {
  if (pe.has_embedding && pe.has_output) return "embedding, output";
  if (pe.has_embedding) return "embedding";
  if (pe.has_output) return "output";
  return pe.idle() ? "idle" : "";
}

void append_row(std::string& text, std::string row) {
  row.erase(row.find_last_not_of(' ') + 1);
  text += row + '\n';
}

}  // namespace

std::string format_plan(const Plan& plan) {
  const ModelConfig& c = plan.config;
  std::string text = fmt::format(
      "{}\n{} layers, width {}, {} heads over {} KV heads, vocabulary {}; context {}, KV cache {}, chunks of "
      "{} tokens\n\n",
      plan.model, c.layers, c.width, c.heads, c.kv_heads, c.vocabulary, plan.options.context,
      to_string(plan.options.kv_format), plan.options.chunk_tokens);
  constexpr const char* row = "{:>5}  {:<12} {:>10} {:>10} {:>10} {:>10} {:>10}  {}";
  const auto line = [&](const auto&... cells) { append_row(text, fmt::format(fmt::runtime(row), cells...)); };
  line("PE", "layers", "weights", "KV cache", "scratch", "segments", "total", "holds");
  std::uint64_t largest = 0;
  for (const PePlan& pe : plan.pes) {
    line(pe.pe, layers_text(pe), format_bytes(pe.weight_bytes), format_bytes(pe.kv_bytes),
         format_bytes(pe.scratch_bytes), format_bytes(pe.segment_bytes), format_bytes(pe.total_bytes()),
         role_text(pe));
    largest = std::max(largest, pe.total_bytes());
  }
  text += fmt::format("\nThe fullest PE needs {}.\n", format_bytes(largest));
  for (const std::string& note : plan.notes) text += note + '\n';
  return text;
}

std::string format_plan_json(const Plan& plan) {
  nlohmann::ordered_json pes = nlohmann::ordered_json::array();
  for (const PePlan& pe : plan.pes)
    pes.push_back({{"pe", pe.pe},
                   {"layer_begin", pe.layer_begin},
                   {"layer_end", pe.layer_end},
                   {"embedding", pe.has_embedding},
                   {"output", pe.has_output},
                   {"idle", pe.idle()},
                   {"weight_bytes", pe.weight_bytes},
                   {"kv_bytes", pe.kv_bytes},
                   {"scratch_bytes", pe.scratch_bytes},
                   {"segment_bytes", pe.segment_bytes},
                   {"total_bytes", pe.total_bytes()}});
  const nlohmann::ordered_json json = {{"model", plan.model},
                                       {"layers", plan.config.layers},
                                       {"context", plan.options.context},
                                       {"kv_format", to_string(plan.options.kv_format)},
                                       {"chunk_tokens", plan.options.chunk_tokens},
                                       {"threads", plan.options.threads},
                                       {"tied_output", plan.config.tied_output},
                                       {"output_pe", plan.output_pe},
                                       {"pipeline", plan.pipeline},
                                       {"pes", std::move(pes)},
                                       {"notes", plan.notes}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace shoal::infer
