// SPDX-License-Identifier: Apache-2.0
// How `shoal bench comm` measures: blocks of calls, Shoal's and the library's in turn, that all ranks begin
// together; for each block the time of the slowest rank. What the machine does meanwhile is watched by two
// probes, since processors change their pace within minutes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench_cases.h"
#include "bench_statistics.h"
#include "shoal/comm/communicator.h"
#include "shoal/comm/transport.h"

namespace shoal::app {

/// The machine at one moment.
struct Probe {
  std::optional<double> line_ns;  // a cache line's way from rank 0 to rank 1, where they share a host
  double read_gb_s = 0;           // what one core reads from memory, 10^9 bytes a second
};

/// Whether the machine changed its pace between two probes: one of the numbers by more than 1.6 times.
bool flipped(const Probe& before, const Probe& after);

class MachineProbe {
 public:
  /// Collective.
  explicit MachineProbe(comm::Communicator& world);
  /// Collective, a few milliseconds. The same on all ranks.
  Probe measure();
  /// Symmetric memory that it takes on each PE.
  static constexpr std::size_t footprint = 256;

 private:
  double line_ns();
  double read_gb_s() const;

  comm::Communicator world_;
  std::unique_ptr<comm::SymmetricMemory> memory_;
  bool reachable_ = false;  // ranks 0 and 1 can store into each other's memory
  std::uint64_t count_ = 0;
  std::vector<char> large_;  // on rank 0
};

struct SideResult {
  std::string name;
  std::int64_t rounds = 0;  // of a block
  std::vector<double> us;   // of a call, in each block
};

struct CaseResult {
  BenchCase bench_case;
  std::vector<SideResult> sides;  // Shoal first
  Probe before, after;
  bool steady = true;  // the machine kept its pace
  int attempts = 1;
};

struct Pace {
  double seconds = 0.5;     // for the blocks of a case
  std::int64_t rounds = 0;  // of a block; 0: so many that a block lasts some milliseconds
};

/// Collective; the same on all ranks. First checks the results of every side: throws AgreedError
/// (communication) for a wrong one.
CaseResult measure_case(comm::Communicator& world, Workspace& workspace, MachineProbe& probe,
                        const BenchCase& bench_case, const Pace& pace);

/// What Communicator adds to Transport::submit: the barrier of a communicator of one rank.
struct FrontResult {
  Quartiles communicator_ns, transport_ns, added_ns;
};
/// Collective; measured on rank 0, the same on all ranks.
FrontResult measure_front(comm::Communicator& world, double seconds);

}  // namespace shoal::app
