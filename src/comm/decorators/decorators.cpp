// SPDX-License-Identifier: Apache-2.0
#include "comm/decorators/decorators.h"

#include <array>
#include <cstdlib>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "comm/decorators/faulty.h"
#include "comm/decorators/traced.h"
#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

std::string option_or_environment(const std::string& option, const char* variable) {
  if (!option.empty()) return option;
  const char* text = std::getenv(variable);
  return text ? text : "";
}

Checking parse_level(const std::string& text) {
  constexpr std::array<std::pair<const char*, Checking>, 5> levels = {{
      {"off", Checking::off},
      {"light", Checking::light},
      {"normal", Checking::normal},
      {"heavy", Checking::heavy},
      {"communicating", Checking::communicating},
  }};
  for (const auto& [name, level] : levels)
    if (text == name) return level;
  fail(ErrorCode::invalid_argument,
       fmt::format("SHOAL_CHECK={}: give off, light, normal, heavy or communicating", text));
}

}  // namespace

Group private_world(const World& world, std::uint64_t context_bit) {
  Group group;
  group.context = context_bit;
  group.world_rank.resize(static_cast<std::size_t>(world.size));
  std::iota(group.world_rank.begin(), group.world_rank.end(), 0);
  group.rank = world.rank;
  return group;
}

Decorations read_decorations(const JobOptions& options) {
  Decorations decorations;
  const std::string level = option_or_environment(options.check, "SHOAL_CHECK");
  if (!level.empty()) decorations.check = parse_level(level);
  decorations.trace = option_or_environment(options.trace, "SHOAL_TRACE");
  decorations.faults = parse_faults(option_or_environment(options.fault, "SHOAL_FAULT"));
  return decorations;
}

std::unique_ptr<Transport> decorate(std::unique_ptr<Transport> transport, const Decorations& decorations) {
  if (decorations.check != Checking::off)
    transport = std::make_unique<Checked>(std::move(transport), decorations.check);
  if (!decorations.faults.empty())
    transport = std::make_unique<Faulty>(std::move(transport), decorations.faults);
  if (!decorations.trace.empty())
    transport = std::make_unique<Traced>(std::move(transport), decorations.trace);
  return transport;
}

}  // namespace shoal::comm
