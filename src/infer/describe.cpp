// SPDX-License-Identifier: Apache-2.0
#include "shoal/infer/describe.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "infer/gguf_names.h"
#include "shoal/base/error.h"
#include "shoal/base/format_bytes.h"
#include "shoal/infer/model_config.h"

namespace shoal::infer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t shown_items = 4;   // of a long array
constexpr std::size_t shown_bytes = 60;  // of a long text

std::int64_t elements(const TensorInfo& tensor) {
  return tensor.bytes == 0 ? 0 : tensor.columns() * tensor.rows();
}

std::int64_t parameters(const ModelFile& file) {
  std::int64_t sum = 0;
  for (const TensorInfo& tensor : file.tensors()) sum += elements(tensor);
  return sum;
}

struct FormatShare {
  std::int64_t tensors = 0;
  std::uint64_t bytes = 0;
};

std::map<tensor::Format, FormatShare> format_shares(const ModelFile& file) {
  std::map<tensor::Format, FormatShare> shares;
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.bytes == 0) continue;
    shares[tensor.format].tensors += 1;
    shares[tensor.format].bytes += tensor.bytes;
  }
  return shares;
}

/// The configuration, or why there is none.
struct Runnable {
  std::optional<ModelConfig> config;
  std::string reason;
};

Runnable runnable(const ModelFile& file) {
  try {
    return {read_config(file), {}};
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
}

/// A text key for a summary: its value, or nothing when it is absent or no text.
std::string text_of(const GgufMetadata& metadata, std::string_view key) {
  const GgufValue* value = metadata.find(key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(&value->value);
  return text == nullptr ? std::string() : printable(*text);
}

/// The prompt format that the template in the file writes, by its control words.
std::string template_family(const GgufMetadata& metadata) {
  const GgufValue* value = metadata.find("tokenizer.chat_template");
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(&value->value);
  if (text == nullptr) return "none";
  if (text->find("<|im_start|>") != std::string::npos) return "chatml";
  if (text->find("[INST]") != std::string::npos) return "llama2";
  return "unknown";
}

std::string human_count(std::int64_t count) {
  if (count >= 1'000'000'000) return fmt::format("{:.2f} billion", static_cast<double>(count) * 1e-9);
  if (count >= 1'000'000) return fmt::format("{:.2f} million", static_cast<double>(count) * 1e-6);
  return fmt::format("{}", count);
}

std::string integer_text(GgufType type, std::int64_t value) {
  if (type == GgufType::boolean) return value != 0 ? "true" : "false";
  if (type == GgufType::uint64) return fmt::format("{}", static_cast<std::uint64_t>(value));
  return fmt::format("{}", value);
}

/// Shortest text of a number that was stored in `type`: 1e-05 rather than 9.999999747378752e-06.
std::string real_text(GgufType type, double value) {
  return type == GgufType::float32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
}

std::string item_text(GgufType type, std::int64_t value) { return integer_text(type, value); }
std::string item_text(GgufType type, double value) { return real_text(type, value); }
std::string item_text(GgufType, const std::string& value) {
  return fmt::format("'{}'", printable(value, shown_bytes));
}

std::string array_text(const GgufArray& array) {
  std::string text;
  std::visit(
      [&](const auto& values) {
        for (std::size_t i = 0; i < std::min(values.size(), shown_items); ++i)
          text += fmt::format("{}{}", i == 0 ? "" : ", ", item_text(array.type, values[i]));
      },
      array.values);
  return fmt::format("{} {} [{}{}]", array.size(), to_string(array.type), text,
                     array.size() > shown_items ? ", ..." : "");
}

std::string value_text(const GgufValue& value) {
  if (const auto* array = std::get_if<GgufArray>(&value.value)) return array_text(*array);
  if (const auto* number = std::get_if<std::int64_t>(&value.value)) return integer_text(value.type, *number);
  if (const auto* real = std::get_if<double>(&value.value)) return real_text(value.type, *real);
  return item_text(GgufType::string, std::get<std::string>(value.value));
}

void add_line(std::string& out, std::string_view label, std::string_view value) {
  out += fmt::format("{:<16}{}\n", label, value);
}

void describe_config(std::string& out, const ModelConfig& c) {
  add_line(out, "layers", fmt::format("{}", c.layers));
  add_line(out, "width", fmt::format("{}, FFN {}", c.width, c.ffn_width));
  add_line(out, "heads", fmt::format("{} of width {}, {} KV heads", c.heads, c.head_width, c.kv_heads));
  add_line(out, "context", fmt::format("{}", c.context));
  add_line(out, "vocabulary", fmt::format("{}", c.vocabulary));
  add_line(out, "output", c.tied_output ? "the embedding matrix (tied)" : "own matrix");
  // Keys and values, 16 bits each, of every layer.
  add_line(out, "KV cache", fmt::format("{} bytes a position in F16", 4 * c.layers * c.kv_width()));
}

void describe_summary(std::string& out, const ModelFile& file) {
  const GgufMetadata& metadata = file.metadata();
  add_line(out, "model", file.path());
  if (file.paths().size() > 1) add_line(out, "files", fmt::format("{} parts", file.paths().size()));
  add_line(out, "name", text_of(metadata, "general.name"));
  add_line(out, "architecture", text_of(metadata, "general.architecture"));
  add_line(out, "format", fmt::format("GGUF version {}", file.version()));
  add_line(out, "weights", format_bytes(file.tensor_bytes()));
  add_line(out, "parameters", human_count(parameters(file)));
  std::string mix;
  for (const auto& [format, share] : format_shares(file))
    mix += fmt::format("{}{} ({} tensors, {})", mix.empty() ? "" : ", ", tensor::traits(format).name,
                       share.tensors, format_bytes(share.bytes));
  add_line(out, "quantisation", mix);
  const Runnable model = runnable(file);
  if (model.config) describe_config(out, *model.config);
  add_line(out, "tokenizer",
           fmt::format("{} {}", text_of(metadata, "tokenizer.ggml.model"),
                       text_of(metadata, "tokenizer.ggml.pre")));
  add_line(out, "chat template", template_family(metadata));
  add_line(out, "runnable", model.config ? "yes" : "no: " + model.reason);
}

Json json_value(const GgufValue& value) {
  if (const auto* array = std::get_if<GgufArray>(&value.value)) {
    Json first = Json::array();
    std::visit(
        [&](const auto& values) {
          for (std::size_t i = 0; i < std::min(values.size(), shown_items); ++i) first.push_back(values[i]);
        },
        array->values);
    return {{"type", to_string(array->type)}, {"length", array->size()}, {"first", first}};
  }
  if (const auto* number = std::get_if<std::int64_t>(&value.value)) {
    if (value.type == GgufType::boolean) return *number != 0;
    if (value.type == GgufType::uint64) return static_cast<std::uint64_t>(*number);
    return *number;
  }
  if (const auto* real = std::get_if<double>(&value.value)) return *real;
  return std::get<std::string>(value.value);
}

Json json_config(const ModelConfig& c) {
  return {{"layers", c.layers},   {"width", c.width},           {"ffn_width", c.ffn_width},
          {"heads", c.heads},     {"kv_heads", c.kv_heads},     {"head_width", c.head_width},
          {"context", c.context}, {"vocabulary", c.vocabulary}, {"tied_output", c.tied_output}};
}

}  // namespace

std::string describe(const ModelFile& file) {
  std::string out;
  describe_summary(out, file);
  out += fmt::format("\nmetadata ({} keys)\n", file.metadata().entries.size());
  for (const GgufEntry& entry : file.metadata().entries)
    out += fmt::format("  {:<44} {}\n", printable(entry.key), value_text(entry.value));
  out += fmt::format("\ntensors ({})\n", file.tensors().size());
  for (const TensorInfo& tensor : file.tensors())
    out +=
        fmt::format("  {:<32} {:<5} {:<18} {}\n", printable(tensor.name), tensor::traits(tensor.format).name,
                    shape_text(tensor.shape), format_bytes(tensor.bytes));
  return out;
}

std::string describe_json(const ModelFile& file) {
  const GgufMetadata& metadata = file.metadata();
  const Runnable model = runnable(file);
  Json formats = Json::object();
  for (const auto& [format, share] : format_shares(file))
    formats[std::string(tensor::traits(format).name)] = {{"tensors", share.tensors}, {"bytes", share.bytes}};
  Json keys = Json::object();
  for (const GgufEntry& entry : metadata.entries) keys[entry.key] = json_value(entry.value);
  Json tensors = Json::array();
  for (const TensorInfo& tensor : file.tensors())
    tensors.push_back({{"name", tensor.name},
                       {"format", tensor::traits(tensor.format).name},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes}});
  Json all = {{"name", text_of(metadata, "general.name")},
              {"architecture", text_of(metadata, "general.architecture")},
              {"version", file.version()},
              {"files", file.paths()},
              {"size_bytes", file.tensor_bytes()},
              {"parameters", parameters(file)},
              {"formats", formats},
              {"model", model.config ? json_config(*model.config) : Json()},
              {"unsupported", model.config ? Json() : Json(model.reason)},
              {"tokenizer",
               {{"model", text_of(metadata, "tokenizer.ggml.model")},
                {"pre", text_of(metadata, "tokenizer.ggml.pre")},
                {"chat_template", template_family(metadata)}}},
              {"metadata", keys},
              {"tensors", tensors}};
  // Texts from a file may be no UTF-8: such bytes become U+FFFD instead of an error.
  return all.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace shoal::infer
