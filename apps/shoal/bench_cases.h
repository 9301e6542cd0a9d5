// SPDX-License-Identifier: Apache-2.0
// What `shoal bench comm` measures: each pattern of shoal::comm at one size, as Shoal does it and as the
// library that carries the transport does it, with operands that both have to give the same result for.
//
// Elements are float32, and all values are small integers, so that sums are exact in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shoal/comm/communicator.h"
#include "shoal/comm/library_calls.h"
#include "shoal/comm/symmetric_segments.h"

namespace shoal::app {

/// What stands in a line of the table. Besides the patterns of comm::Operation there are "send_recv" (a
/// message and one back, halved) and "put_signal" (the same by SymmetricSegments).
const std::vector<std::string>& bench_patterns();

/// Whether `pattern` moves no data, so that its size means nothing.
bool without_size(const std::string& pattern);
/// Whether only ranks 0 and 1 take part.
bool between_a_pair(const std::string& pattern);

struct BenchCase {
  std::string pattern;
  /// Of the vector that is sent, broadcast or reduced; of one rank's part in gather, scatter and
  /// all_gather; of what goes from one rank to another in all_to_all.
  std::size_t bytes = 0;

  /// Bytes of the largest operand.
  std::size_t operand_bytes(int ranks) const;
};

/// One way to do a case.
struct Side {
  std::string name;  // "Shoal", or LibraryCalls::name
  /// Makes the call `rounds` times. Where there is a root, it changes with each call: else ranks that only
  /// send would run ahead, and what is timed would not be the pattern.
  std::function<void(std::int64_t rounds)> run;
  double calls_per_round = 1;
  float* send = nullptr;
  float* recv = nullptr;
};

/// Memory that all cases share.
struct Workspace {
  /// Collective. `largest_operand` and `largest_message` in bytes.
  Workspace(comm::Communicator& world, std::size_t largest_operand, std::size_t largest_message);
  /// Symmetric memory that it takes on each PE, that of the library's calls included.
  static std::size_t footprint(int ranks, std::size_t largest_operand, std::size_t largest_message);

  std::vector<float> send, recv;
  comm::SymmetricSegments<float> segments;
  std::uint64_t sequence = 0;  // of the latest signal between ranks 0 and 1
  std::vector<std::unique_ptr<comm::LibraryCalls>> libraries;
};

/// Shoal first, then the libraries that have such a call. Collective.
std::vector<Side> make_sides(comm::Communicator& world, Workspace& workspace, const BenchCase& bench_case);

/// Fills in the operands of rank `rank`, for a first call with root 0.
void fill_operands(const BenchCase& bench_case, int ranks, comm::Rank rank, float* send, float* recv);

/// Compares with closed form what the first call has left on `rank`. Returns "" or what is wrong.
std::string check_result(const BenchCase& bench_case, int ranks, comm::Rank rank, const float* recv);

}  // namespace shoal::app
