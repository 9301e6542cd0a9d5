// SPDX-License-Identifier: Apache-2.0
// shoal-make-model: writes a runnable llama-architecture GGUF file with random weights, to measure and to
// test with the shape of a model that is not at hand.
#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "shoal/base/error.h"
#include "shoal/infer/model_file.h"
#include "shoal/infer/random_model.h"

namespace {

using shoal::infer::OutputMatrix;
using shoal::infer::RandomModelOptions;
using shoal::tensor::Format;

Format parse_format(const std::string& name) {
  std::string known;
  for (const Format format : shoal::tensor::all_formats) {
    if (shoal::tensor::traits(format).name == name) return format;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", shoal::tensor::traits(format).name);
  }
  shoal::fail(shoal::ErrorCode::invalid_argument,
              fmt::format("there is no format '{}'; formats are: {}, Q4_K_M, Q5_K_M", name, known));
}

/// One format for all matrices, or a mix by the name that public files use.
void set_format(RandomModelOptions& options, const std::string& name) {
  options.more_bits = name == "Q4_K_M" || name == "Q5_K_M";
  options.format = parse_format(options.more_bits ? name.substr(0, 4) : name);
  // Quantised files keep the output matrix in Q6_K where its rows are whole blocks of it.
  const bool quantized = shoal::tensor::traits(options.format).block_elements > 1;
  if (quantized && options.format != Format::q8_0 && options.width % 256 == 0)
    options.output_format = Format::q6_k;
  else
    options.output_format.reset();
}

struct Arguments {
  std::string path;
  std::string preset = "tiny";
  std::string format;
  std::string output_format;
  bool tied = false;
  RandomModelOptions shape;  // only the fields whose option was given count
};

/// The preset with the given options over it.
RandomModelOptions resolve(const CLI::App& app, const Arguments& arguments) {
  RandomModelOptions options = shoal::infer::random_model_preset(arguments.preset);
  const auto take = [&](const char* flag, auto RandomModelOptions::*field) {
    if (app.count(flag) > 0) options.*field = arguments.shape.*field;
  };
  take("--name", &RandomModelOptions::name);
  take("--layers", &RandomModelOptions::layers);
  take("--width", &RandomModelOptions::width);
  take("--ffn", &RandomModelOptions::ffn_width);
  take("--heads", &RandomModelOptions::heads);
  take("--kv-heads", &RandomModelOptions::kv_heads);
  take("--head-width", &RandomModelOptions::head_width);
  take("--vocab", &RandomModelOptions::vocabulary);
  take("--context", &RandomModelOptions::context);
  take("--seed", &RandomModelOptions::seed);
  take("--split", &RandomModelOptions::files);
  if (!arguments.format.empty()) set_format(options, arguments.format);
  if (!arguments.output_format.empty()) options.output_format = parse_format(arguments.output_format);
  if (arguments.tied) options.output = OutputMatrix::tied;
  return options;
}

void add_options(CLI::App& app, Arguments& arguments) {
  app.add_option("FILE", arguments.path, "The file to write, NAME.gguf")->required();
  app.add_option("--preset", arguments.preset, "Shape to start from: tiny (default), tinyllama-1.1b");
  app.add_option("--layers", arguments.shape.layers, "Number of layers");
  app.add_option("--width", arguments.shape.width, "Elements of a token's state");
  app.add_option("--ffn", arguments.shape.ffn_width, "Width of the feed-forward part");
  app.add_option("--heads", arguments.shape.heads, "Query heads");
  app.add_option("--kv-heads", arguments.shape.kv_heads, "Key/value heads, a divisor of the query heads");
  app.add_option("--head-width", arguments.shape.head_width, "Elements of a head (default: width / heads)");
  app.add_option("--vocab", arguments.shape.vocabulary, "Number of tokens, at least 259");
  app.add_option("--context", arguments.shape.context, "Positions");
  app.add_option("--format", arguments.format, "Format of the matrices: F32, F16, BF16, Q4_0, ..., Q4_K_M");
  app.add_option("--output-format", arguments.output_format, "Format of the output matrix");
  app.add_flag("--tied", arguments.tied, "No output matrix: the embedding is used");
  app.add_option("--split", arguments.shape.files, "Number of files to write");
  app.add_option("--seed", arguments.shape.seed, "Seed of the random numbers");
  app.add_option("--name", arguments.shape.name, "Name of the model");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes a GGUF model of the architecture llama with random weights.");
  Arguments arguments;
  add_options(app, arguments);
  CLI11_PARSE(app, argc, argv);
  try {
    const auto paths = shoal::infer::write_random_model(arguments.path, resolve(app, arguments));
    const auto model = shoal::infer::ModelFile::open(paths.front());
    for (const std::string& path : paths) fmt::print("{}\n", path);
    fmt::print("{} tensors, {:.1f} MB of weights\n", model.tensors().size(),
               static_cast<double>(model.tensor_bytes()) * 1e-6);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "shoal-make-model: {}\n", error.what());
    return 1;
  }
}
