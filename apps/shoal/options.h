// SPDX-License-Identifier: Apache-2.0
// What the commands are asked to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/infer/kv_cache.h"
#include "shoal/infer/sampler.h"

namespace shoal::app {

struct RunOptions {
  std::string model;
  std::string prompt;
  bool has_prompt = false;
  std::string prompt_file;
  bool chat = false;
  std::string system;
  int pes = 1;
  bool has_pes = false;
  std::string transport = "auto";
  std::string hostfile;
  int threads = 0;              // per PE; 0: the cores of the host, shared among its PEs
  std::int64_t predict = -1;    // tokens; -1: until the model ends or the context is full
  std::int64_t context = 4096;  // positions, at most what the model was trained for unless has_context
  bool has_context = false;
  std::string kv_format = "f16";
  std::int64_t chunk = 64;
  std::string memory;
  bool force = false;  // run although the plan does not fit
  infer::SamplerOptions sampling;
  bool special = false;  // control tokens in a raw prompt are meant as such
  bool json = false;
  bool ignore_end = false;  // go on after the end token (for measurements)
};

struct PlanCommand {
  std::string model;
  int pes = 1;
  std::string memory;
  std::int64_t context = 4096;
  bool has_context = false;
  std::string kv_format = "f16";
  std::int64_t chunk = 64;
  bool json = false;
};

struct BenchOptions {
  int pes = 2;
  bool has_pes = false;
  std::string transport = "auto";
  std::string hostfile;
  std::vector<std::string> patterns;  // none: all
  std::vector<std::string> bytes = {"8", "4K", "64K", "1M"};
  std::int64_t rounds = 0;  // calls of a block; 0: chosen by time
  double seconds = 35;      // for all cases
  std::string json;         // a file, "-" for standard output, or "" for none
};

/// "8G", "512M", "1.5GiB", "800000000": bytes, in powers of 1024. Throws Error naming `option`.
std::uint64_t parse_size(const std::string& text, const std::string& option);

/// One or several sizes, separated by commas.
std::vector<std::uint64_t> parse_sizes(const std::string& text, const std::string& option);

}  // namespace shoal::app
