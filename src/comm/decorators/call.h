// SPDX-License-Identifier: Apache-2.0
// What can be asked of a transport, with names: the patterns, and the calls of symmetric memory. Shared by
// the decorators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "shoal/comm/operation.h"

namespace shoal::comm {

/// Values below `allocate` are those of Pattern.
enum class Call : std::uint8_t { allocate = 32, put, get, flush, wait };
inline constexpr std::size_t call_count = 37;

constexpr Call call_of(Pattern pattern) { return static_cast<Call>(pattern); }
constexpr std::size_t index_of(Call call) { return static_cast<std::size_t>(call); }

/// "all_reduce", "put", ...; "unknown" for a number that is none.
std::string_view to_string(Call call);
std::optional<Call> find_call(std::string_view name);

/// The buffer that tells an operation's element type.
const Buffer& main_buffer(const Operation& operation);

}  // namespace shoal::comm
