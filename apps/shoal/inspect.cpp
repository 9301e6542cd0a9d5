// SPDX-License-Identifier: Apache-2.0
// shoal plan, info and doctor: they look, and start nothing.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "model_setup.h"
#include "shoal/comm/job.h"
#include "shoal/infer/describe.h"
#include "shoal/infer/plan.h"
#include "shoal/tensor/kernels.h"

namespace shoal::app {

int plan_command(const PlanCommand& o) {
  const infer::ModelFile file = infer::ModelFile::open(o.model);
  infer::PlanOptions options;
  options.pes = o.pes;
  options.kv_format = infer::kv_format_from_string(o.kv_format);
  options.chunk_tokens = o.chunk;
  if (!o.memory.empty()) options.memory = parse_sizes(o.memory, "--memory");
  const infer::ModelConfig config = infer::read_config(file);
  options.context = context_for(config, o.context, o.has_context);
  const infer::Plan plan = infer::make_plan(file, config, options);
  std::fputs((o.json ? infer::format_plan_json(plan) + "\n" : infer::format_plan(plan)).c_str(), stdout);
  return 0;
}

int info_command(const std::string& model, bool json) {
  const infer::ModelFile file = infer::ModelFile::open(model);
  std::fputs((json ? infer::describe_json(file) + "\n" : infer::describe(file)).c_str(), stdout);
  return 0;
}

int doctor_command(bool json) {
  const comm::LaunchEnvironment environment = comm::read_launch_environment();
  const std::vector<comm::TransportStatus> transports = comm::probe_transports();
  const std::string chosen = comm::resolve_transport("auto", environment);
  if (json) {
    nlohmann::ordered_json out;
    out["launcher"] = environment.launcher;
    out["auto"] = chosen;
    out["kernels"] = tensor::default_kernels().name;
    for (const comm::TransportStatus& t : transports)
      out["transports"].push_back({{"name", t.name},
                                   {"library", t.library},
                                   {"available", t.available},
                                   {"detail", t.detail},
                                   {"launcher", t.launcher},
                                   {"package", t.package}});
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  fmt::print("transports\n");
  for (const comm::TransportStatus& t : transports) {
    fmt::print("  {:8} {:22} {}  {}{}\n", t.name, t.library, t.available ? "works  " : "missing", t.detail,
               t.launcher.empty() ? "" : fmt::format("; started by {}", t.launcher));
    if (!t.available) fmt::print("  {:8} {:22} apt-get install {}\n", "", "", t.package);
  }
  fmt::print("launcher   {}\n", environment.launcher.empty()
                                    ? "none: this process was started plainly"
                                    : fmt::format("{}, process {} of {}", environment.launcher,
                                                  environment.rank, environment.size));
  fmt::print("auto       means {} here{}\n", chosen,
             environment.launcher.empty() ? "; -n N --transport mpi or shmem starts processes" : "");
  std::string kernels;
  for (const tensor::KernelSet* set : tensor::available_kernels()) kernels += fmt::format("{} ", set->name);
  fmt::print("kernels    {}(in use: {})\n", kernels, tensor::default_kernels().name);
  return 0;
}

}  // namespace shoal::app
