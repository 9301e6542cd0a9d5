// SPDX-License-Identifier: Apache-2.0
// Taking part in a job: which transport, how to start and end, what happens when a rank fails.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "shoal/base/error.h"
#include "shoal/comm/communicator.h"

namespace shoal::comm {

struct JobOptions {
  /// "threads", "mpi", "shmem", or "auto": what the launcher's environment and the libraries here
  /// suggest; SHOAL_TRANSPORT overrides "auto".
  std::string transport = "auto";
  /// Ranks of the `threads` transport. The others take their number from the launcher.
  int threads = 1;
  /// Symmetric memory that the program will allocate on each PE (sum of SegmentMemory::footprint).
  std::size_t symmetric_bytes = std::size_t{16} << 20;
  /// Sums run in rank order across hosts too (else: within a host, then over the hosts), so that their bits
  /// do not depend on how ranks lie on hosts. SHOAL_REPRODUCIBLE=1 sets it as well.
  bool reproducible = false;
  /// For finding mistakes (docs/debugging.md). What is empty is taken from the environment.
  std::string check{};  // SHOAL_CHECK: off (the default), light, normal, heavy, communicating
  std::string trace{};  // SHOAL_TRACE: file for the timeline; none where it is not set
  std::string fault{};  // SHOAL_FAULT: what is to go wrong; nothing where it is not set
};

/// The process environment that launchers set.
struct LaunchEnvironment {
  std::string launcher;  // "Open MPI", "MPICH" (any PMI launcher), "Slurm", or "" when started plainly
  int rank = 0;
  int size = 1;
  int local_size = 1;  // ranks on this host, where known, else `size`
};
LaunchEnvironment read_launch_environment();

/// The transport that options.transport means here: never "auto". Throws Error (invalid_argument) for
/// an unknown name.
std::string resolve_transport(const std::string& requested, const LaunchEnvironment& environment);

/// Runs `body` on every rank of the job and returns the process's exit code: what `body` returned (the
/// largest of the ranks in this process). An exception that leaves `body` on any rank is printed as one
/// line naming rank and host, and ends the job on all ranks within seconds, with a code other than 0.
/// Where the host program has already initialised the library, that one is used and not finalised.
/// Throws Error when the job cannot be joined: missing library, wrong launcher.
int run(const JobOptions& options, const std::function<int(Communicator&)>& body);

/// Runs `body` on `ranks` threads of this process and returns when all have ended. The first rank's
/// exception is thrown here after the others have stopped (they see `aborted` in their next call).
void run_threads(int ranks, const std::function<void(Communicator&)>& body);

/// An error that all ranks of the job have agreed on, or that is the same on all: rank 0 alone prints it,
/// and the job ends in order.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Collective: runs `local` on every rank. If it throws on any of them, all throw the first such rank's
/// message, so that a bad file or too little memory is one line and not one a rank: an AgreedError in the
/// communicator of the whole job, an Error in a part of it.
void agree(Communicator& communicator, const std::function<void()>& local);

/// The line that is printed for an error on a rank: "shoal: PE 2 (h3): what".
std::string error_line(const Communicator& world, const std::string& what);

/// How long a wait for a peer may last before the job is ended: SHOAL_TIMEOUT in seconds, else 300.
std::chrono::milliseconds default_deadline();

/// What `shoal doctor` shows of one transport.
struct TransportStatus {
  std::string name;     // "mpi"
  std::string library;  // "Open MPI", "MPICH", ...
  bool available = false;
  std::string detail;    // version, or why it is not available
  std::string launcher;  // path of the program that starts it, "" when none is found or needed
  std::string package;   // what brings it on Debian
};
std::vector<TransportStatus> probe_transports();

}  // namespace shoal::comm
