// SPDX-License-Identifier: Apache-2.0
#include "comm/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "shoal/comm/library_calls.h"

namespace shoal::comm {
namespace {

std::filesystem::path module_folder() {
  if (const char* folder = std::getenv("SHOAL_MODULE_PATH")) return folder;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&load_module), &info) == 0 || !info.dli_fname) return ".";
  return std::filesystem::absolute(info.dli_fname).parent_path() / "shoal";
}

std::filesystem::path path_of(const ModuleDescription& description) {
  return module_folder() / fmt::format("transport_{}.so", description.file);
}

const Module* module_of(void* handle) {
  auto* entry = reinterpret_cast<ModuleEntry*>(dlsym(handle, module_symbol));
  const Module* module = entry ? entry() : nullptr;
  return module && module->abi == module_abi ? module : nullptr;
}

// The module that `transport` came from. No other is loaded for the search: two libraries of one
// interface need not bear each other.
const Module* module_in_use(const Transport& transport) {
  for (const ModuleDescription& description : known_modules) {
    if (description.transport != transport.name()) continue;
    void* handle = dlopen(path_of(description).c_str(), RTLD_NOW | RTLD_NOLOAD);
    const Module* module = handle ? module_of(handle) : nullptr;
    if (module && module->library() == transport.library()) return module;
  }
  return nullptr;
}

}  // namespace

bool is_offered(const ModuleDescription& description) {
  std::error_code ignored;
  return !description.unpackaged || std::filesystem::exists(path_of(description), ignored);
}

const Module* load_module(const ModuleDescription& description, std::string& reason) {
  const std::filesystem::path path = path_of(description);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    reason = fmt::format("{} was not built (install {} and build again)", path.string(), description.package);
    return nullptr;
  }
  // Never closed: communication libraries do not survive being unloaded.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    reason = fmt::format("{} (install {})", dlerror(), description.package);
    return nullptr;
  }
  const Module* module = module_of(handle);
  if (!module) {
    reason = fmt::format("{} belongs to another version of Shoal", path.string());
    return nullptr;
  }
  return module;
}

std::vector<std::unique_ptr<LibraryCalls>> library_calls(Communicator& world, std::size_t operand_bytes) {
  const Module* module = module_in_use(world.transport());
  if (!module) return {};
  return module->library_calls(world, operand_bytes);
}

std::size_t library_calls_footprint(int ranks, std::size_t operand_bytes) {
  // Two operands, two work arrays of half a size, and some words of synchronisation for each rank.
  constexpr std::size_t rank_bytes = 2048;
  return 3 * operand_bytes + (static_cast<std::size_t>(ranks) + 4) * rank_bytes;
}

std::string find_program(const char* name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

}  // namespace shoal::comm
