// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include <fmt/format.h>

namespace shoal::bench {

Quartiles quartiles(std::vector<double> ms) {
  std::ranges::sort(ms);
  const auto at = [&](double fraction) {
    const double position = fraction * static_cast<double>(ms.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, ms.size() - 1);
    return std::lerp(ms[below], ms[above], position - static_cast<double>(below));
  };
  return {at(0.25), at(0.5), at(0.75), ms.size()};
}

void print(const Line& line) {
  const double seconds = line.time.median_ms * 1e-3;
  std::string text = fmt::format(
      R"({{"case": "{}", "ranks": {}, "transport": "{}", "library": "{}", "ms": {{"low": {:.6g}, "median": {:.6g}, "high": {:.6g}}}, "repeats": {})",
      line.name, line.ranks, line.transport, line.library, line.time.low_ms, line.time.median_ms,
      line.time.high_ms, line.time.repeats);
  if (line.bytes > 0)
    text += fmt::format(R"(, "bytes": {:.0f}, "gb_s": {:.4g}, "gb_s_a_rank": {:.4g})", line.bytes,
                        line.bytes / seconds * 1e-9, line.bytes / seconds * 1e-9 / line.ranks);
  if (line.flops > 0)
    text += fmt::format(R"(, "flops": {:.0f}, "gflop_s": {:.4g})", line.flops, line.flops / seconds * 1e-9);
  for (const auto& [name, value] : line.more) text += fmt::format(R"(, "{}": {:.8g})", name, value);
  fmt::print("{}}}\n", text);
  std::fflush(stdout);
}

bool Choice::wanted(const std::string& name) const {
  return cases.empty() || std::ranges::any_of(cases, [&](const std::string& part) {
           return name.find(part) != std::string::npos;
         });
}

bool enough(const std::vector<double>& ms, double seconds) {
  constexpr std::size_t least = 5, most = 200;
  return ms.size() >= most ||
         (ms.size() >= least && std::accumulate(ms.begin(), ms.end(), 0.0) >= 1e3 * seconds);
}

}  // namespace shoal::bench
