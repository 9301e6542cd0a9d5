// SPDX-License-Identifier: Apache-2.0
#include "bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace shoal::app {
namespace {

using Json = nlohmann::ordered_json;

// Three digits that count.
std::string short_number(double number) {
  return fmt::format("{:.{}f}", number, number < 10 ? 3 : number < 100 ? 2 : number < 1000 ? 1 : 0);
}

std::string percent(const Quartiles& q) { return fmt::format("{:.0f}%", q.spread() * 100); }

std::string short_ratio(double ratio) { return ratio < 0.005 ? "<0.01" : fmt::format("{:.2f}", ratio); }

// As it is given to --bytes: "64K".
std::string short_bytes(std::size_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return fmt::format("{}M", bytes >> 20);
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return fmt::format("{}K", bytes >> 10);
  return std::to_string(bytes);
}

std::string label(const BenchCase& c) {
  return without_size(c.pattern) ? c.pattern : c.pattern + " " + short_bytes(c.bytes);
}

const SideResult* find_side(const CaseResult& result, const std::string& name) {
  const auto found = std::ranges::find(result.sides, name, &SideResult::name);
  return found == result.sides.end() ? nullptr : &*found;
}

// Shoal against one interface of the library, in a line.
std::string summarize(const std::string& baseline, const std::vector<CaseResult>& results) {
  std::vector<double> ratios;
  const CaseResult* worst = nullptr;
  double largest = 0;
  for (const CaseResult& result : results) {
    const SideResult* library = find_side(result, baseline);
    if (!library) continue;
    ratios.push_back(paired_ratio(result.sides[0].us, library->us).median);
    if (ratios.back() <= largest) continue;
    largest = ratios.back();
    worst = &result;
  }
  if (ratios.empty()) return fmt::format("{}: has none of these calls\n", baseline);
  return fmt::format("{}: Shoal faster in {} of {} cases, median ratio {:.2f}, largest {:.2f} ({})\n",
                     baseline, std::ranges::count_if(ratios, [](double r) { return r < 1; }), ratios.size(),
                     quartiles(ratios).median, largest, label(worst->bench_case));
}

Json json_of(const Quartiles& q) { return {{"low", q.low}, {"median", q.median}, {"high", q.high}}; }

Json json_of(const Probe& probe) {
  Json json = {{"line_ns", nullptr}, {"read_gb_s", probe.read_gb_s}};
  if (probe.line_ns) json["line_ns"] = *probe.line_ns;
  return json;
}

Json json_of(const SideResult& side) {
  return {{"name", side.name},
          {"us", json_of(quartiles(side.us))},
          {"blocks", side.us.size()},
          {"rounds", side.rounds}};
}

Json json_of(const CaseResult& result) {
  Json json = {{"pattern", result.bench_case.pattern}, {"bytes", result.bench_case.bytes}};
  json["shoal"] = json_of(result.sides[0]);
  json["libraries"] = Json::array();
  for (std::size_t i = 1; i < result.sides.size(); ++i) {
    Json library = json_of(result.sides[i]);
    library["ratio"] = json_of(paired_ratio(result.sides[0].us, result.sides[i].us));
    json["libraries"].push_back(library);
  }
  json["steady"] = result.steady;
  json["attempts"] = result.attempts;
  json["before"] = json_of(result.before);
  json["after"] = json_of(result.after);
  return json;
}

}  // namespace

std::string format_bench_head(const BenchEnvironment& e, const Probe& probe) {
  std::string text =
      fmt::format("transport {} ({}), {} rank{} on {} host{}\n", e.transport, e.library, e.ranks,
                  e.ranks == 1 ? "" : "s", e.hosts.size(), e.hosts.size() == 1 ? "" : "s");
  text += fmt::format("one core reads {:.1f} GB/s", probe.read_gb_s);
  if (probe.line_ns)
    text += fmt::format("; a cache line goes from rank 0 to rank 1 in {:.0f} ns", *probe.line_ns);
  text += "\n";
  if (e.local_ranks > e.cores)
    text += fmt::format("{} ranks share {} cores of {}: times include waiting for a core\n", e.local_ranks,
                        e.cores, e.hosts.front());
  if (e.baselines.empty()) text += fmt::format("{}: there is no library to compare with\n", e.library);
  text += fmt::format("\n{:<16}{:>6}{:>10}{:>7}", "", "", "Shoal", "");
  for (const std::string& name : e.baselines) text += fmt::format("{:>11}{:>8}{:>8}", name, "", "");
  text += fmt::format("\n{:<16}{:>6}{:>10}{:>7}", "pattern", "bytes", "us", "spread");
  for (std::size_t i = 0; i < e.baselines.size(); ++i)
    text += fmt::format("{:>11}{:>8}{:>8}", "us", "ratio", "spread");
  return text + "\n";
}

std::string format_bench_row(const BenchEnvironment& e, const CaseResult& result) {
  const BenchCase& c = result.bench_case;
  const Quartiles shoal = quartiles(result.sides[0].us);
  std::string text =
      fmt::format("{:<16}{:>6}{:>10}{:>7}", c.pattern, without_size(c.pattern) ? "-" : short_bytes(c.bytes),
                  short_number(shoal.median), percent(shoal));
  for (const std::string& name : e.baselines) {
    const SideResult* library = find_side(result, name);
    if (!library) {
      text += fmt::format("{:>11}{:>8}{:>8}", "-", "-", "-");
      continue;
    }
    const Quartiles ratio = paired_ratio(result.sides[0].us, library->us);
    text += fmt::format("{:>11}{:>8}{:>8}", short_number(quartiles(library->us).median),
                        short_ratio(ratio.median), percent(ratio));
  }
  return text + (result.steady ? "\n" : " ~\n");
}

std::string format_bench_end(const BenchEnvironment& e, const std::vector<CaseResult>& results,
                             const std::optional<FrontResult>& front) {
  std::string text = "\n";
  if (front)
    text += fmt::format(
        "front: a barrier of one rank takes {:.1f} ns, Transport::submit alone {:.1f}: Communicator adds "
        "{:.1f}\n",
        front->communicator_ns.median, front->transport_ns.median, front->added_ns.median);
  if (results.empty()) return text;
  for (const std::string& baseline : e.baselines) text += summarize(baseline, results);
  text +=
      "us: of a call on the slowest rank, median over blocks. spread: between the quartiles, of the "
      "median.\n";
  if (!e.baselines.empty())
    text += "ratio: Shoal / library, median over pairs of blocks; below 1 Shoal is faster.\n";
  if (!std::ranges::all_of(results, &CaseResult::steady))
    text += "~: the machine changed its pace meanwhile.\n";
  return text;
}

std::string format_bench_json(const BenchEnvironment& e, const std::vector<CaseResult>& results,
                              const std::optional<FrontResult>& front) {
  Json json;
  json["environment"] = {{"shoal", SHOAL_VERSION},
                         {"transport", e.transport},
                         {"library", e.library},
                         {"ranks", e.ranks},
                         {"hosts", e.hosts},
                         {"cores", e.cores},
                         {"local_ranks", e.local_ranks},
                         {"baselines", e.baselines}};
  json["cases"] = Json::array();
  for (const CaseResult& result : results) json["cases"].push_back(json_of(result));
  if (front)
    json["front"] = {{"communicator_ns", json_of(front->communicator_ns)},
                     {"transport_ns", json_of(front->transport_ns)},
                     {"added_ns", json_of(front->added_ns)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shoal::app
