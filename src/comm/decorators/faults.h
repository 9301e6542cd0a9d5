// SPDX-License-Identifier: Apache-2.0
// The language of SHOAL_FAULT: which rank goes wrong, when and how. See docs/debugging.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/decorators/call.h"

namespace shoal::comm {

enum class FaultAction : std::uint8_t { die, silent, fail, exit, delay, lose };

struct Fault {
  std::optional<Rank> rank;  // of the job; absent: every rank
  std::optional<Call> call;  // absent: all that the action can be applied to
  std::uint64_t after = 1;   // the number of the first operation that it strikes, from 1
  std::uint64_t every = 0;   // and then every so many operations; 0: only once
  double chance = 1.0;       // that it strikes then
  std::uint64_t seed = 1;    // of the chance
  FaultAction action = FaultAction::die;
  std::chrono::microseconds delay{0};

  /// Whether it counts operations of this kind.
  bool applies_to(Call made) const;
  /// Whether it strikes at the number-th of them on `on`; the same in every run.
  bool strikes(Rank on, std::uint64_t number) const;
};

/// "rank=1,after=20,do=die;do=delay,us=200,every=3". Throws invalid_argument naming the field.
std::vector<Fault> parse_faults(const std::string& text);

}  // namespace shoal::comm
