// SPDX-License-Identifier: Apache-2.0
// What a run says at its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/infer/engine.h"

namespace shoal::app {

struct RunSummary {
  std::string text;
  std::vector<infer::Token> tokens;  // generated
  std::string finish;                // "end", "length", "interrupted"
  std::int64_t prompt_tokens = 0;
  double prompt_s = 0;    // until the first token was there
  double generate_s = 0;  // for the tokens after the first
  double load_s = 0;
  std::string transport, library, kernels;
  int threads = 1;
  std::vector<infer::PeReport> pes;

  double prompt_rate() const { return prompt_s > 0 ? static_cast<double>(prompt_tokens) / prompt_s : 0; }
  double generate_rate() const {
    return generate_s > 0 && tokens.size() > 1 ? static_cast<double>(tokens.size() - 1) / generate_s : 0;
  }
};

std::string format_summary(const RunSummary& summary);
std::string format_summary_json(const RunSummary& summary);

/// A bar on the terminal's last line: "loading 42 % of 1.2 GiB". Draws at most 10 times a second.
class ProgressBar {
 public:
  explicit ProgressBar(bool enabled) : enabled_(enabled) {}
  ~ProgressBar();
  void show(std::uint64_t done, std::uint64_t total);

 private:
  bool enabled_;
  bool drawn_ = false;
  std::int64_t last_ms_ = 0;
};

}  // namespace shoal::app
