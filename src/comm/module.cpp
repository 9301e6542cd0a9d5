// SPDX-License-Identifier: Apache-2.0
#include "comm/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

namespace shoal::comm {
namespace {

std::filesystem::path module_folder() {
  if (const char* folder = std::getenv("SHOAL_MODULE_PATH")) return folder;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&load_module), &info) == 0 || !info.dli_fname) return ".";
  return std::filesystem::absolute(info.dli_fname).parent_path() / "shoal";
}

}  // namespace

const Module* load_module(const ModuleDescription& description, std::string& reason) {
  const std::filesystem::path path = module_folder() / fmt::format("transport_{}.so", description.file);
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
  auto* entry = reinterpret_cast<ModuleEntry*>(dlsym(handle, module_symbol));
  const Module* module = entry ? entry() : nullptr;
  if (!module || module->abi != module_abi) {
    reason = fmt::format("{} belongs to another version of Shoal", path.string());
    return nullptr;
  }
  return module;
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
