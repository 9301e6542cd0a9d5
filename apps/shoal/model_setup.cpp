// SPDX-License-Identifier: Apache-2.0
#include "model_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "shoal/base/error.h"

namespace shoal::app {
namespace {

std::string read_all(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> owned(nullptr, std::fclose);
  std::FILE* file = stdin;
  if (path != "-") {
    owned.reset(std::fopen(path.c_str(), "rb"));
    file = owned.get();
  }
  if (!file) fail(ErrorCode::io, fmt::format("--file {}: {}", path, std::strerror(errno)));
  std::string text;
  char block[65536];
  for (std::size_t n; (n = std::fread(block, 1, sizeof block, file)) > 0;) text.append(block, n);
  if (std::ferror(file)) fail(ErrorCode::io, fmt::format("--file {}: {}", path, std::strerror(errno)));
  return text;
}

// Offset of the first byte that is not UTF-8 (RFC 3629: no overlong forms, no surrogates).
std::optional<std::size_t> invalid_utf8(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xc2 ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    if (length == 0 || i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return i;
    const auto second = length > 1 ? static_cast<unsigned char>(text[i + 1]) : 0;
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
        (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
      return i;
    i += length;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t context_for(const infer::ModelConfig& config, std::int64_t asked, bool explicitly) {
  if (!explicitly) return std::min<std::int64_t>(asked, config.context);
  if (asked > config.context)
    fail(ErrorCode::invalid_argument,
         fmt::format("--ctx {}: the model knows {} positions (context_length)", asked, config.context));
  return asked;
}

ModelSetup set_up(const RunOptions& options, int pes, int threads) {
  infer::ModelFile file = infer::ModelFile::open(options.model);
  infer::ModelConfig config = infer::read_config(file);
  infer::PlanOptions plan;
  plan.pes = pes;
  plan.threads = threads;
  plan.context = context_for(config, options.context, options.has_context);
  plan.kv_format = infer::kv_format_from_string(options.kv_format);
  plan.chunk_tokens = options.chunk;
  if (!options.memory.empty()) plan.memory = parse_sizes(options.memory, "--memory");
  if (options.force && !plan.memory.empty()) {
    // Shares as asked, but no limit.
    for (const std::uint64_t bytes : plan.memory) plan.shares.push_back(static_cast<double>(bytes));
    if (plan.shares.size() == 1) plan.shares.clear();
    plan.memory.clear();
  }
  infer::Plan made = infer::make_plan(file, config, plan);
  return {std::move(file), std::move(config), std::move(made)};
}

void check_utf8(const std::string& text, const std::string& where) {
  if (const auto offset = invalid_utf8(text))
    fail(ErrorCode::invalid_argument,
         fmt::format("{}: byte {} (0x{:02x}) is not valid UTF-8; convert the text first", where, *offset,
                     static_cast<unsigned char>(text[*offset])));
}

std::string read_prompt(const RunOptions& options) {
  if (options.has_prompt && !options.prompt_file.empty())
    fail(ErrorCode::invalid_argument, "give either -p or --file, not both");
  const std::string text = options.prompt_file.empty() ? options.prompt : read_all(options.prompt_file);
  check_utf8(text, options.prompt_file.empty() ? "-p" : "--file " + options.prompt_file);
  return text;
}

}  // namespace shoal::app
