// SPDX-License-Identifier: Apache-2.0
// shoal: the command line. Options are declared here; the work is in the commands.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "bench.h"
#include "commands.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace {

using namespace shoal;

std::string not_empty(const std::string& value) { return value.empty() ? "a value is missing" : ""; }

void add_memory_options(CLI::App& command, std::int64_t& context, std::string& kv_format,
                        std::int64_t& chunk) {
  command
      .add_option("--ctx", context,
                  "Positions of the context (default: 4096, or what the model knows if that is less)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  command.add_option("--kv", kv_format, "Format of the KV cache")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->capture_default_str();
  command.add_option("--chunk", chunk, "Tokens of a prompt that travel together")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{4096}))
      ->capture_default_str();
}

void add_run(CLI::App& app, app::RunOptions& o) {
  CLI::App& run = *app.add_subcommand("run", "Generate text from a model that is split over PEs");
  run.add_option("-m,--model", o.model, "GGUF file (any part of a split model)")->required();
  run.add_option("-p,--prompt", o.prompt, "Text to continue");
  run.add_option("--file", o.prompt_file, "Read the prompt from a file ('-' for standard input)");
  run.add_flag("--chat", o.chat, "Converse, with the model's chat template");
  run.add_option("--system", o.system, "System message of the conversation");
  run.add_option("-n,--pes", o.pes, "Processing elements to split the model over (starts the launcher)")
      ->check(CLI::Range(1, 1 << 20));
  run.add_option("--transport", o.transport, "auto, threads, mpi or shmem")
      ->check(CLI::IsMember({"auto", "threads", "mpi", "shmem"}))
      ->capture_default_str();
  run.add_option("--hostfile", o.hostfile, "Hosts for the launcher to start PEs on");
  run.add_option("--threads", o.threads,
                 "Compute threads of each PE (default: the host's cores, shared among its PEs)")
      ->check(CLI::Range(1, 4096));
  run.add_option("--predict", o.predict, "Tokens to generate at most")->check(CLI::NonNegativeNumber);
  add_memory_options(run, o.context, o.kv_format, o.chunk);
  run.add_option("--memory", o.memory, "Memory a PE may use: one size, or one for each PE (8G, or 8G,4G,4G)")
      ->check(not_empty);
  run.add_flag("--force", o.force, "Run although the plan does not fit --memory");
  run.add_option("--temp", o.sampling.temperature, "Temperature (0: greedy)")->capture_default_str();
  run.add_option("--top-k", o.sampling.top_k, "Sample from the k likeliest tokens (0: all)")
      ->capture_default_str();
  run.add_option("--top-p", o.sampling.top_p, "Sample from the likeliest tokens of this total probability")
      ->capture_default_str();
  run.add_option("--min-p", o.sampling.min_p,
                 "Leave out tokens less likely than this fraction of the likeliest")
      ->capture_default_str();
  run.add_option("--repeat-penalty", o.sampling.repeat_penalty, "Weaken tokens of the last --repeat-window")
      ->capture_default_str();
  run.add_option("--repeat-window", o.sampling.repeat_window, "Tokens that --repeat-penalty looks at")
      ->capture_default_str();
  run.add_option("--seed", o.sampling.seed, "Seed of the sampler")
      ->check(CLI::NonNegativeNumber)  // else -1 would become the largest number
      ->capture_default_str();
  run.add_flag("--special", o.special, "Control tokens in the prompt are meant as such");
  run.add_flag("--ignore-end", o.ignore_end, "Go on after the model's end token");
  run.add_flag("--json", o.json, "Print one JSON object instead of streaming text");
}

void add_plan(CLI::App& app, app::PlanCommand& o) {
  CLI::App& plan = *app.add_subcommand("plan", "Show which PE would hold what, without running");
  plan.add_option("model", o.model, "GGUF file")->required();
  plan.add_option("-n,--pes", o.pes, "Processing elements")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  plan.add_option("--memory", o.memory, "Memory of a PE: one size, or one for each PE (8G, or 8G,4G,4G)")
      ->check(not_empty);
  add_memory_options(plan, o.context, o.kv_format, o.chunk);
  plan.add_flag("--json", o.json, "Print JSON");
}

CLI::App& add_bench_comm(CLI::App& app, app::BenchOptions& o) {
  CLI::App& bench = *app.add_subcommand("bench", "Measure what this machine does");
  bench.require_subcommand(1);
  CLI::App& comm = *bench.add_subcommand(
      "comm", "Time every pattern of communication against the library's own call, in one run");
  comm.add_option("-n,--pes", o.pes, "Processing elements (starts the launcher)")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  comm.add_option("--transport", o.transport, "auto, threads, mpi or shmem")
      ->check(CLI::IsMember({"auto", "threads", "mpi", "shmem"}))
      ->capture_default_str();
  comm.add_option("--hostfile", o.hostfile, "Hosts for the launcher to start PEs on");
  comm.add_option("--patterns", o.patterns, "Which patterns, separated by commas (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Validator(app::bench_pattern_error, ""));
  comm.add_option("--bytes", o.bytes, "Sizes, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Validator(app::bench_bytes_error, ""))
      ->capture_default_str();
  comm.add_option("--rounds", o.rounds, "Calls of a block (default: some milliseconds of them)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  comm.add_option("--seconds", o.seconds, "Time for all cases together")
      ->check(CLI::Range(0.01, 1e6))
      ->capture_default_str();
  comm.add_option("--json", o.json, "Write all figures to a file ('-': to standard output, without a table)")
      ->check(not_empty);
  return comm;
}

int dispatch(int argc, char** argv) {
  CLI::App app("Shoal: language models split over the PEs of an MPI or OpenSHMEM job");
  app.set_version_flag("--version", std::string("shoal ") + SHOAL_VERSION);
  app.require_subcommand(1);
  app::RunOptions run;
  app::PlanCommand plan;
  app::BenchOptions bench;
  std::string info_model;
  bool info_json = false, doctor_json = false;
  add_run(app, run);
  add_plan(app, plan);
  const CLI::App& bench_comm = add_bench_comm(app, bench);
  CLI::App& info = *app.add_subcommand("info", "Show what is in a model file");
  info.add_option("model", info_model, "GGUF file")->required();
  info.add_flag("--json", info_json, "Print JSON");
  CLI::App& doctor = *app.add_subcommand("doctor", "Show which transports work here, and what is missing");
  doctor.add_flag("--json", doctor_json, "Print JSON");
  const auto is_first = [&](const CLI::App* command) { return command->check_name(argv[1]); };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_first).empty()) {
    std::fprintf(stderr, "shoal: there is no command '%s' (see shoal --help)\n", argv[1]);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "shoal: %s (see shoal --help)\n", error.what());
    return 2;
  }
  if (CLI::App& command = *app.get_subcommand("run"); command.parsed()) {
    run.has_prompt = command.count("--prompt") > 0;
    run.has_pes = command.count("--pes") > 0;
    run.has_context = command.count("--ctx") > 0;
    return app::run_command(run, std::vector<std::string>(argv + 2, argv + argc));
  }
  if (CLI::App& command = *app.get_subcommand("plan"); command.parsed()) {
    plan.has_context = command.count("--ctx") > 0;
    return app::plan_command(plan);
  }
  if (bench_comm.parsed()) {
    bench.has_pes = bench_comm.count("--pes") > 0;
    return app::bench_comm_command(bench, std::vector<std::string>(argv + 1, argv + argc));
  }
  if (info.parsed()) return app::info_command(info_model, info_json);
  return app::doctor_command(doctor_json);
}

}  // namespace

// What was printed has to have arrived: a full disk or a closed pipe is a failure.
int after_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "shoal: cannot write to standard output: %s\n", std::strerror(errno));
  return code == 0 ? 1 : code;
}

int main(int argc, char** argv) {
  try {
    return after_output(dispatch(argc, argv));
  } catch (const comm::AgreedError& error) {
    if (comm::read_launch_environment().rank == 0) std::fprintf(stderr, "shoal: %s\n", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shoal: %s\n", error.what());
  }
  return 1;
}
