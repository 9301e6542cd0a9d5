// SPDX-License-Identifier: Apache-2.0
// shoal run: one process of the job, or the start of one.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <thread>

#include "chat.h"
#include "commands.h"
#include "generation.h"
#include "interrupt.h"
#include "launch.h"
#include "model_setup.h"
#include "report.h"
#include "shoal/base/error.h"
#include "shoal/base/thread_team.h"
#include "shoal/comm/job.h"
#include "shoal/comm/transport.h"
#include "shoal/infer/engine.h"
#include "shoal/infer/load.h"
#include "shoal/infer/tokenizer.h"
#include "shoal/tensor/kernels.h"

namespace shoal::app {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Placement : JobPlace {
  int threads = 1;  // of each PE
};

Placement place(const RunOptions& o) {
  Placement p{
      place_job({.pes = o.pes, .has_pes = o.has_pes, .transport = o.transport, .hostfile = o.hostfile})};
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int on_this_host = p.environment.launcher.empty() ? p.pes : p.environment.local_size;
  p.threads = o.threads > 0 ? o.threads : std::max(1, cores / std::max(1, on_this_host));
  return p;
}

// The sampler knows its options by the names of their fields.
void check_sampling(const infer::SamplerOptions& sampling) {
  try {
    (void)infer::Sampler(sampling);
  } catch (const Error& error) {
    const std::string what = error.what();
    std::string option = what.substr(0, what.find(' '));
    if (option == "temperature") option = "temp";
    std::ranges::replace(option, '_', '-');
    fail(error.code(), fmt::format("--{}: {}", option, what));
  }
}

void check_options(const RunOptions& o) {
  if (!o.chat && !o.has_prompt && o.prompt_file.empty())
    fail(ErrorCode::invalid_argument, "give a prompt with -p or --file, or --chat for a conversation");
  if (o.chat && (o.has_prompt || !o.prompt_file.empty()))
    fail(ErrorCode::invalid_argument, "--chat reads what you type: leave out -p and --file");
  if (!o.system.empty() && !o.chat)
    fail(ErrorCode::invalid_argument, "--system is for --chat: put it into the prompt instead");
  check_utf8(o.system, "--system");
  if (o.chat && o.json) fail(ErrorCode::invalid_argument, "--json is for one prompt, not for --chat");
  check_sampling(o.sampling);
}

void complete_prompt(infer::Engine& engine, const infer::Tokenizer& tokenizer,
                     const std::vector<infer::Token>& prompt, const RunOptions& o, RunSummary& summary) {
  Generation generation(engine, tokenizer, o, summary);
  const auto emit = [&](const std::string& text) {
    summary.text += text;
    if (!o.json) show(text);
  };
  if (!o.json && o.prompt_file.empty()) show(o.prompt);
  try {
    generation.answer(prompt, true, emit);
  } catch (...) {
    if (!o.json) show("\n");  // the message begins a line
    throw;
  }
  if (!o.json) show("\n");
}

// What PE 0 checks before it drives: everything about the text that can be wrong.
std::vector<infer::Token> prompt_tokens(const infer::Tokenizer& tokenizer, const RunOptions& o,
                                        std::int64_t context) {
  const std::string text = read_prompt(o);
  std::vector<infer::Token> tokens =
      tokenizer.encode_prompt(text, o.special ? infer::SpecialTokens::parse : infer::SpecialTokens::plain);
  if (tokens.empty())
    fail(ErrorCode::invalid_argument,
         "the prompt is empty, and this model has no token to begin a text with: give some text");
  if (static_cast<std::int64_t>(tokens.size()) > context)
    fail(
        ErrorCode::invalid_argument,
        fmt::format(
            "the prompt has {} tokens, but the context only {} positions: shorten it, or give a larger --ctx",
            tokens.size(), context));
  return tokens;
}

int job_body(comm::Communicator& world, const RunOptions& o, const Placement& placement,
             const std::function<ModelSetup&()>& model) {
  const auto start = Clock::now();
  catch_interrupts();  // again: OpenSHMEM's start puts its own handler (which exits) for SIGUSR1
  RunSummary summary;
  ModelSetup* setup = nullptr;
  std::optional<infer::Tokenizer> tokenizer;
  std::optional<infer::ChatTemplate> chat;
  std::vector<infer::Token> prompt;
  const tensor::KernelSet* kernels = nullptr;
  comm::agree(world, [&] {
    setup = &model();
    kernels = &tensor::default_kernels();
    if (world.rank() != 0) return;
    tokenizer.emplace(setup->file.metadata());
    if (!tokenizer->warning().empty()) fmt::print(stderr, "shoal: {}\n", tokenizer->warning());
    if (tokenizer->vocabulary() != setup->config.vocabulary)
      fail(ErrorCode::format, fmt::format("{}: tokenizer of {} tokens for a model of {}", setup->file.path(),
                                          tokenizer->vocabulary(), setup->config.vocabulary));
    if (o.chat)
      chat = infer::ChatTemplate::recognize(setup->file.metadata(), *tokenizer);
    else
      prompt = prompt_tokens(*tokenizer, o, setup->plan.options.context);
  });
  infer::check_same_model(world, setup->file);

  ThreadTeam team(placement.threads);
  infer::Weights weights;
  {
    ProgressBar bar(world.rank() == 0 && stderr_is_terminal());
    weights = infer::load_shard(world, setup->file, setup->plan, team,
                                [&](std::uint64_t done, std::uint64_t total) { bar.show(done, total); });
  }
  infer::Engine engine(world, setup->plan, weights, team, *kernels, o.sampling);
  summary.load_s = seconds_since(start);
  if (world.rank() == 0) {
    if (chat)
      converse(Generation(engine, *tokenizer, o, summary), *chat, o);
    else
      complete_prompt(engine, *tokenizer, prompt, o, summary);
    engine.stop();
  } else {
    engine.serve();
  }
  summary.pes = engine.reports();
  if (world.rank() == 0) {
    std::fflush(stdout);
    summary.transport = world.transport().name();
    summary.library = world.transport().library();
    summary.kernels = kernels->name;
    summary.threads = placement.threads;
    if (o.json)
      fmt::print("{}\n", format_summary_json(summary));
    else
      fmt::print(stderr, "\n{}", format_summary(summary));
  }
  world.barrier();  // nobody gives its segments back before all have read theirs
  return 0;
}

}  // namespace

int run_command(const RunOptions& o, const std::vector<std::string>& arguments) {
  const Placement placement = place(o);
  if (placement.start) {
    check_options(o);
    (void)set_up(o, placement.pes, placement.threads);  // one message from here, instead of one a PE
    std::vector<std::string> command = {"run"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return launch_job({.command = command,
                       .transport = placement.transport,
                       .pes = placement.pes,
                       .hostfile = o.hostfile,
                       .wants_input = o.chat || o.prompt_file == "-"});
  }
  catch_interrupts();
  // The symmetric heap is sized by the plan, so the model is opened before the job is joined; what goes
  // wrong is told once all PEs are together.
  std::optional<ModelSetup> setup;
  std::exception_ptr failure;
  comm::JobOptions job{.transport = placement.transport, .threads = placement.pes};
  try {
    check_options(o);
    setup = set_up(o, placement.pes, placement.threads);
    job.symmetric_bytes =
        infer::Engine::symmetric_bytes(setup->plan) + infer::load_symmetric_bytes(placement.pes);
  } catch (...) {
    if (placement.pes == 1 || placement.transport == "threads") throw;
    failure = std::current_exception();
  }
  return comm::run(job, [&](comm::Communicator& world) {
    return job_body(world, o, placement, [&]() -> ModelSetup& {
      if (failure) std::rethrow_exception(failure);
      return *setup;
    });
  });
}

}  // namespace shoal::app
