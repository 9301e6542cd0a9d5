// SPDX-License-Identifier: Apache-2.0
// What the launcher's environment variables say about this process's place in a job.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "comm/module.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::comm {
namespace {

std::optional<int> integer(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 0 || value > 1'000'000'000) return std::nullopt;
  return static_cast<int>(value);
}

// The first number of a list such as "2(x3),1": the ranks on the first host.
std::optional<int> first_of_list(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text) return std::nullopt;
  const long value = std::strtol(text, nullptr, 10);
  return value > 0 && value <= 1'000'000'000 ? std::optional<int>(static_cast<int>(value)) : std::nullopt;
}

bool has_remote_memory_network() {
  std::error_code ignored;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", ignored);
  return devices != std::filesystem::directory_iterator();
}

bool module_usable(const char* transport, const std::string& launcher) {
  for (const ModuleDescription& description : known_modules) {
    std::string reason;
    const bool belongs = launcher == description.environment || launcher == "Slurm";
    if (description.unpackaged) continue;
    if (description.transport == std::string(transport) && belongs && load_module(description, reason))
      return true;
  }
  return false;
}

}  // namespace

LaunchEnvironment read_launch_environment() {
  struct Names {
    const char* launcher;
    const char* rank;
    const char* size;
    const char* local_size;
  };
  // In this order: an Open MPI job within a Slurm allocation shows both.
  constexpr std::array<Names, 3> launchers{{
      {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
      {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"},
  }};
  for (const Names& names : launchers) {
    const auto rank = integer(names.rank);
    const auto size = integer(names.size);
    if (!rank || !size) continue;
    // A step of one task is how Slurm gives out a shell, not a job.
    if (names.launcher == std::string("Slurm") && *size == 1) continue;
    return {names.launcher, *rank, *size, first_of_list(names.local_size).value_or(*size)};
  }
  return {};
}

std::string resolve_transport(const std::string& requested, const LaunchEnvironment& environment) {
  std::string name = requested, source = "transport";
  if (const char* wish = std::getenv("SHOAL_TRANSPORT"); wish && *wish && name == "auto") {
    name = wish;
    source = "SHOAL_TRANSPORT";
  }
  if (name == "threads" || name == "mpi" || name == "shmem") return name;
  if (name != "auto")
    fail(ErrorCode::invalid_argument,
         fmt::format("{} '{}' is not known: use auto, threads, mpi or shmem", source, name));
  if (environment.launcher.empty()) return "threads";
  // Within a host, and where the network accesses remote memory, puts win; over TCP messages do.
  const bool puts_win = environment.local_size == environment.size || has_remote_memory_network();
  if (puts_win && module_usable("shmem", environment.launcher)) return "shmem";
  return "mpi";
}

}  // namespace shoal::comm
