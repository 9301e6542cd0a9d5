// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "shoal/base/format_bytes.h"

namespace shoal::app {
namespace {

std::string layers_of(const infer::PeReport& pe) {
  if (pe.idle) return "idle";
  std::string text =
      pe.layer_end > pe.layer_begin ? fmt::format("{}-{}", pe.layer_begin, pe.layer_end - 1) : "none";
  if (pe.has_embedding) text += " +embedding";
  if (pe.has_output) text += " +output";
  return text;
}

}  // namespace

std::string format_summary(const RunSummary& s) {
  std::string out =
      fmt::format("prompt    {:5} tokens  {:7.1f} tokens/s\n", s.prompt_tokens, s.prompt_rate());
  out += fmt::format("generated {:5} tokens  {:7.1f} tokens/s  (ended by {})\n", s.tokens.size(),
                     s.generate_rate(), s.finish);
  out += fmt::format("loaded in {:.2f} s; {} ({}), {} threads a PE, {} kernels\n", s.load_s, s.transport,
                     s.library, s.threads, s.kernels);
  std::size_t host_width = 4;
  for (const infer::PeReport& pe : s.pes) host_width = std::max(host_width, pe.host.size());
  out += fmt::format("{:>4}  {:{}}  {:26} {:>11} {:>10} {:>9} {:>11}\n", "PE", "host", host_width, "layers",
                     "memory", "compute s", "wait s", "sent");
  for (const infer::PeReport& pe : s.pes)
    out += fmt::format("{:>4}  {:{}}  {:26} {:>11} {:>10.2f} {:>9.2f} {:>11}\n", pe.pe, pe.host, host_width,
                       layers_of(pe), format_bytes(pe.memory_bytes), pe.compute_s, pe.wait_s,
                       format_bytes(pe.sent_bytes));
  return out;
}

std::string format_summary_json(const RunSummary& s) {
  nlohmann::ordered_json out;
  out["text"] = s.text;
  out["tokens"] = s.tokens;
  out["finish"] = s.finish;
  out["prompt_tokens"] = s.prompt_tokens;
  out["prompt_s"] = s.prompt_s;
  out["prompt_tokens_per_s"] = s.prompt_rate();
  out["generate_s"] = s.generate_s;
  out["generate_tokens_per_s"] = s.generate_rate();
  out["load_s"] = s.load_s;
  out["transport"] = s.transport;
  out["library"] = s.library;
  out["kernels"] = s.kernels;
  out["threads"] = s.threads;
  for (const infer::PeReport& pe : s.pes)
    out["pes"].push_back({{"pe", pe.pe},
                          {"host", pe.host},
                          {"layer_begin", pe.layer_begin},
                          {"layer_end", pe.layer_end},
                          {"embedding", pe.has_embedding != 0},
                          {"output", pe.has_output != 0},
                          {"idle", pe.idle != 0},
                          {"memory_bytes", pe.memory_bytes},
                          {"compute_s", pe.compute_s},
                          {"wait_s", pe.wait_s},
                          {"sent_bytes", pe.sent_bytes},
                          {"messages", pe.messages}});
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fprintf(stderr, "\r\033[K");
}

void ProgressBar::show(std::uint64_t done, std::uint64_t total) {
  if (!enabled_ || total == 0) return;
  const std::int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                               std::chrono::steady_clock::now().time_since_epoch())
                               .count();
  if (drawn_ && now - last_ms_ < 100) return;
  last_ms_ = now;
  drawn_ = true;
  constexpr int width = 30;
  const auto fraction = static_cast<double>(done) / static_cast<double>(total);
  const int filled = static_cast<int>(fraction * width);
  std::fprintf(stderr, "\r\033[Kloading [%-*s] %3.0f %% of %s", width,
               std::string(static_cast<std::size_t>(filled), '#').c_str(), fraction * 100,
               format_bytes(total).c_str());
}

}  // namespace shoal::app
