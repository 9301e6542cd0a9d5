// SPDX-License-Identifier: Apache-2.0
// Limits of the collectives within a host, from the environment: the way in which they are measured.
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "comm/host_collectives.h"
#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

using Limits = HostCollectives::Limits;

constexpr std::array<std::pair<std::string_view, std::size_t Limits::*>, 10> fields{{
    {"chunk_bytes", &Limits::chunk_bytes},
    {"crowded_chunk_bytes", &Limits::crowded_chunk_bytes},
    {"one_shot_bytes", &Limits::one_shot_bytes},
    {"lent_bytes", &Limits::lent_bytes},
    {"crowded_lent_bytes", &Limits::crowded_lent_bytes},
    {"lent_broadcast_bytes", &Limits::lent_broadcast_bytes},
    {"lent_reduce_bytes", &Limits::lent_reduce_bytes},
    {"parts_reduce_bytes", &Limits::parts_reduce_bytes},
    {"lent_piece_bytes", &Limits::lent_piece_bytes},
    {"shared_piece_bytes", &Limits::shared_piece_bytes},
}};

// A chunk has room for a line for each rank.
constexpr std::size_t least = 4096;

[[noreturn]] void refuse(std::string_view setting) {
  std::string names;
  for (const auto& [name, member] : fields) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  fail(ErrorCode::invalid_argument,
       fmt::format("SHOAL_TUNING: '{}' is not NAME=BYTES of at least {}, NAME one of {}", setting, least,
                   names));
}

void set(Limits& limits, std::string_view setting) {
  const std::size_t sign = setting.find('=');
  const std::string_view name = setting.substr(0, sign);
  std::size_t bytes = 0;
  if (sign == std::string_view::npos) refuse(setting);
  const char* const end = setting.data() + setting.size();
  const auto [rest, error] = std::from_chars(setting.data() + sign + 1, end, bytes);
  if (error != std::errc{} || rest != end || bytes < least) refuse(setting);
  for (const auto& [known, member] : fields)
    if (known == name) {
      limits.*member = bytes;
      return;
    }
  refuse(setting);
}

}  // namespace

Limits Limits::from_environment() {
  Limits limits;
  const char* const text = std::getenv("SHOAL_TUNING");
  if (!text) return limits;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    set(limits, rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return limits;
}

}  // namespace shoal::comm
