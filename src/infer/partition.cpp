// SPDX-License-Identifier: Apache-2.0
// Exact partitions by dynamic programming over (PE, first layer).
#include "infer/partition.h"

#include <algorithm>

#include "infer/byte_math.h"

namespace shoal::infer {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double rounding = 1.0 + 1e-12;  // of sums of doubles that are equal in exact arithmetic

/// The best cost of placing the layers from `begin` on, on the PEs from `pe` on.
class Table {
 public:
  Table(std::int64_t pes, std::int64_t layers)
      : columns_(layers + 1), cost_(static_cast<std::size_t>((pes + 1) * columns_), never) {
    at(pes, layers) = 0;
  }
  double& at(std::int64_t pe, std::int64_t begin) {
    return cost_[static_cast<std::size_t>(pe * columns_ + begin)];
  }

 private:
  std::int64_t columns_;
  std::vector<double> cost_;
};

/// The DP in both its passes: `combine(load, share, rest)` is the cost of a PE and of those after it.
template <class Combine>
Table solve(const PipelineLoads& loads, const std::vector<PeCapacity>& pes, double bottleneck,
            const Combine& combine) {
  const auto count = static_cast<std::int64_t>(pes.size());
  Table table(count, loads.layers());
  for (std::int64_t pe = count - 1; pe >= 0; --pe) {
    const auto& [share, limit] = pes[static_cast<std::size_t>(pe)];
    for (std::int64_t begin = 0; begin <= loads.layers(); ++begin) {
      double& best = table.at(pe, begin);
      const std::int64_t most = share > 0 ? loads.layers() - begin : 0;
      for (std::int64_t n = 0; n <= most; ++n) {
        const std::uint64_t load = loads.load(pe, begin, n);
        if (load > limit || (share > 0 && static_cast<double>(load) / share > bottleneck)) break;
        best = std::min(best, combine(static_cast<double>(load), share, table.at(pe + 1, begin + n)));
      }
    }
  }
  return table;
}

/// A PE without a share has no relative load.
double relative(double load, double share) { return share > 0 ? load / share : 0.0; }

double sum_of_squares(double load, double share, double rest) { return rest + load * relative(load, share); }

}  // namespace

PipelineLoads::PipelineLoads(const PipelineCosts& costs) : costs_(costs), prefix_{0} {
  for (const std::uint64_t layer : costs.layers) prefix_.push_back(checked_add(prefix_.back(), layer));
  // The largest sum that load() can form; smaller ones cannot overflow then.
  std::uint64_t all = prefix_.back();
  for (const std::uint64_t part :
       {std::max(costs.stage, costs.first_stage), costs.first, costs.last, costs.every})
    all = checked_add(all, part);
}

std::uint64_t PipelineLoads::load(std::int64_t pe, std::int64_t begin, std::int64_t count) const {
  std::uint64_t bytes = costs_.every;
  if (pe == 0) bytes += costs_.first;
  if (count == 0) return bytes;
  const std::int64_t end = begin + count;
  bytes += pe == 0 ? costs_.first_stage : costs_.stage;
  bytes += prefix_[static_cast<std::size_t>(end)] - prefix_[static_cast<std::size_t>(begin)];
  if (end == layers()) bytes += costs_.last;
  return bytes;
}

std::vector<std::int64_t> partition(const PipelineLoads& loads, const std::vector<PeCapacity>& pes) {
  const double bottleneck = solve(loads, pes, never, [](double load, double share, double rest) {
                              return std::max(rest, relative(load, share));
                            }).at(0, 0);
  if (bottleneck == never) return {};
  Table even = solve(loads, pes, bottleneck * rounding, sum_of_squares);

  std::vector<std::int64_t> counts;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < pes.size(); ++i) {
    const auto pe = static_cast<std::int64_t>(i);
    const double share = pes[i].share;
    const std::uint64_t limit = pes[i].limit;
    const double best = even.at(pe, begin) * rounding;
    // Among equals the largest count, so that what remains goes to earlier PEs.
    std::int64_t n = share > 0 ? loads.layers() - begin : 0;
    const auto good = [&] {
      const std::uint64_t load = loads.load(pe, begin, n);
      const auto weight = static_cast<double>(load);
      return load <= limit && relative(weight, share) <= bottleneck * rounding &&
             sum_of_squares(weight, share, even.at(pe + 1, begin + n)) <= best;
    };
    while (n > 0 && !good()) --n;
    counts.push_back(n);
    begin += n;
  }
  return counts;
}

bool fits(const PipelineLoads& loads, std::int64_t pes, std::uint64_t limit) {
  // Each PE takes as many layers as it can: that leaves the fewest to the later ones. A PE that could
  // take all that is left but for the output leaves one layer to the next, which has the output then.
  std::int64_t begin = 0;
  for (std::int64_t pe = 0; pe < pes; ++pe) {
    if (loads.load(pe, begin, 0) > limit) return false;
    if (begin == loads.layers()) continue;
    std::int64_t n = 0;
    while (begin + n < loads.layers() && loads.load(pe, begin, n + 1) <= limit) ++n;
    begin += n;
  }
  return begin == loads.layers();
}

}  // namespace shoal::infer
