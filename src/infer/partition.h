// SPDX-License-Identifier: Apache-2.0
// Contiguous partitions of a pipeline's layers over PEs: the arithmetic of a plan, without the files.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace shoal::infer {

/// What the parts of a model weigh on a PE, in bytes.
struct PipelineCosts {
  std::vector<std::uint64_t> layers;  // each with its KV cache
  std::uint64_t stage = 0;            // once on every PE with layers but PE 0
  std::uint64_t first = 0;            // on PE 0: the embedding, and the output when tied
  std::uint64_t first_stage = 0;      // on PE 0 when it has layers: in place of `stage`
  std::uint64_t last = 0;             // on the last PE with layers: the output when it is not tied
  std::uint64_t every = 0;            // on every PE, idle ones too
};

/// What PE `pe` weighs with `count` layers from `begin` on.
class PipelineLoads {
 public:
  explicit PipelineLoads(const PipelineCosts& costs);
  std::int64_t layers() const { return static_cast<std::int64_t>(prefix_.size()) - 1; }
  std::uint64_t load(std::int64_t pe, std::int64_t begin, std::int64_t count) const;

 private:
  PipelineCosts costs_;
  std::vector<std::uint64_t> prefix_;
};

struct PeCapacity {
  double share = 1.0;  // what its load is divided by; 0: takes no layers
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
};

/// Layers of each PE, in order: the largest load / share is as small as it can be, then the sum of
/// load^2 / share. Empty when no partition respects the limits. Time O(PEs x layers^2) at most.
std::vector<std::int64_t> partition(const PipelineLoads& loads, const std::vector<PeCapacity>& pes);

/// Whether any partition over `pes` PEs has no load above `limit`. Time O(PEs + layers).
bool fits(const PipelineLoads& loads, std::int64_t pes, std::uint64_t limit);

}  // namespace shoal::infer
