// SPDX-License-Identifier: Apache-2.0
#include "comm/decorators/agreement.h"

#include <algorithm>

#include <fmt/format.h>

namespace shoal::comm {
namespace {

using D = CallDescription;

// Fowler, Noll, Vo: FNV-1a, over whole numbers.
std::int64_t hash(std::span<const std::int64_t> numbers) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const std::int64_t number : numbers) h = (h ^ static_cast<std::uint64_t>(number)) * 0x100000001b3;
  return static_cast<std::int64_t>(h);
}

Call call_in(const D& d) { return static_cast<Call>(d.field[D::call]); }

std::string ordinal(std::uint64_t number) {
  const std::uint64_t last = number % 10;
  const bool teen = number / 10 % 10 == 1;
  return fmt::format("{}{}", number,
                     teen        ? "th"
                     : last == 1 ? "st"
                     : last == 2 ? "nd"
                     : last == 3 ? "rd"
                                 : "th");
}

// What the members should have called: what most of them did, and of equally many the lowest rank.
Rank find_reference(std::span<const D> calls) {
  const auto votes = [&](const D& d) {
    return std::count_if(calls.begin(), calls.end(), [&](const D& other) { return other.field == d.field; });
  };
  const auto best = std::max_element(calls.begin(), calls.end(),
                                     [&](const D& a, const D& b) { return votes(a) < votes(b); });
  return static_cast<Rank>(best - calls.begin());
}

// The field that differs, as a member says it.
std::string operand(const D& d, D::Field field) {
  switch (field) {
    case D::root: return fmt::format("root {}", d.field[D::root]);
    case D::reduction: return to_string(static_cast<Reduction>(d.field[D::reduction]));
    case D::bytes: return fmt::format("{} bytes", d.field[D::bytes]);
    default: break;
  }
  const char* type = to_string(static_cast<DType>(d.field[D::dtype]));
  // Where each rank's count is its own, the type alone is wrong.
  return d.field[D::counts_hash] != 0 || call_in(d) == call_of(Pattern::all_to_all)
             ? std::string(type)
             : fmt::format("{} {}", d.field[D::count], type);
}

}  // namespace

CallDescription CallDescription::of(const Operation& operation) {
  CallDescription d;
  const Buffer& buffer = main_buffer(operation);
  const auto set = [&](Field field, auto value) { d.field[field] = static_cast<std::int64_t>(value); };
  set(call, operation.pattern);
  if (operation.pattern == Pattern::barrier) return d;
  set(dtype, buffer.dtype);
  if (has_root(operation.pattern)) set(root, operation.peer);
  switch (operation.pattern) {
    case Pattern::reduce:
    case Pattern::all_reduce:
    case Pattern::scan:
    case Pattern::exclusive_scan: set(reduction, operation.reduction); [[fallthrough]];
    case Pattern::broadcast: set(count, buffer.count); break;
    case Pattern::reduce_scatter: set(reduction, operation.reduction); [[fallthrough]];
    case Pattern::gather:
    case Pattern::all_gather:
    case Pattern::scatter: set(counts_hash, hash(operation.counts)); break;
    default: break;
  }
  return d;
}

CallDescription CallDescription::of_allocation(std::size_t asked) {
  CallDescription d;
  d.field[call] = static_cast<std::int64_t>(Call::allocate);
  d.field[bytes] = static_cast<std::int64_t>(asked);
  return d;
}

std::string name_of(const World& world, const Group& group, Rank rank) {
  const Rank pe = group.world_rank[static_cast<std::size_t>(rank)];
  const std::string& host = world.host[static_cast<std::size_t>(pe)];
  return group.size() == world.size && pe == rank ? fmt::format("rank {} ({})", rank, host)
                                                  : fmt::format("rank {} (PE {} on {})", rank, pe, host);
}

std::string compare_calls(const World& world, const Group& group, std::span<const CallDescription> calls,
                          std::uint64_t number) {
  const Rank right = find_reference(calls);
  const D& expected = calls[static_cast<std::size_t>(right)];
  for (const D::Field field : {D::call, D::root, D::dtype, D::count, D::reduction, D::bytes})
    for (Rank rank = 0; rank < group.size(); ++rank) {
      const D& found = calls[static_cast<std::size_t>(rank)];
      if (found.field[field] == expected.field[field]) continue;
      const std::string wrong = name_of(world, group, rank), other = name_of(world, group, right);
      const std::string_view name = to_string(call_in(found));
      if (field == D::call)
        return fmt::format("{} calls {} (its {} collective here), but {} calls {}", wrong, name,
                           ordinal(number), other, to_string(call_in(expected)));
      return fmt::format("{} on {}: {}, but {} calls it with {} (the {} collective here)", name, wrong,
                         operand(found, field), other, operand(expected, field), ordinal(number));
    }
  return "";
}

bool needs_counts(std::span<const CallDescription> calls) {
  return call_in(calls[0]) == call_of(Pattern::all_to_all) ||
         std::any_of(calls.begin(), calls.end(),
                     [&](const D& d) { return d.field[D::counts_hash] != calls[0].field[D::counts_hash]; });
}

std::string compare_counts(const World& world, const Group& group, std::span<const CallDescription> calls,
                           std::span<const std::int64_t> counts, std::uint64_t number) {
  const auto n = static_cast<std::size_t>(group.size());
  const auto name = [&](std::size_t rank) { return name_of(world, group, static_cast<Rank>(rank)); };
  if (call_in(calls[0]) == call_of(Pattern::all_to_all)) {
    for (std::size_t from = 0; from < n; ++from)
      for (std::size_t to = 0; to < n; ++to) {
        const std::int64_t sent = counts[from * 2 * n + to], received = counts[to * 2 * n + n + from];
        if (sent != received)
          return fmt::format(
              "all_to_all: {} sends {} elements to {}, which expects {} (the {} collective here)", name(from),
              sent, name(to), received, ordinal(number));
      }
    return "";
  }
  const auto right = static_cast<std::size_t>(find_reference(calls));
  for (std::size_t rank = 0; rank < n; ++rank)
    for (std::size_t i = 0; i < n; ++i)
      if (counts[rank * n + i] != counts[right * n + i])
        return fmt::format("{} on {}: counts[{}] is {}, but {} calls it with {} (the {} collective here)",
                           to_string(call_in(calls[0])), name(rank), i, counts[rank * n + i], name(right),
                           counts[right * n + i], ordinal(number));
  return "";
}

}  // namespace shoal::comm
