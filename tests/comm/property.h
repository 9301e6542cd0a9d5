// SPDX-License-Identifier: Apache-2.0
// Random sequences of communication against a serial model.
//
// A script is drawn from a seed, so all ranks know it. Every value is a closed form of (operation, rank,
// index), so each rank computes alone what it must get. Steps make communicators and run operations on them;
// an operation is blocking, or started and waited for some steps later, in an order that differs from rank to
// rank. A script that fails is made smaller while it still fails (shrink), and printed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shoal/comm/communicator.h"

namespace shoal::comm::property {

/// Makes communicator number (its place in the list, 0 is the world) from `parent`.
struct NewCommunicator {
  enum class How { split, subset, duplicate } how = How::split;
  int parent = 0;
  int divisor =
      1;  // split: color = rank mod divisor, in reverse order if `reversed`; subset: ranks mod divisor = 0
  bool reversed = false;
};

struct Step {
  std::uint64_t id = 0;  // of the values; stays when the script is made smaller
  std::optional<NewCommunicator> creates{};
  Pattern pattern = Pattern::barrier;
  int communicator = 0;
  DType dtype = DType::int32;
  Reduction reduction = Reduction::sum;
  Rank root = 0;                       // modulo the size
  std::vector<std::int64_t> counts{};  // of rank r: counts[r mod length]; one number where all are equal
  bool in_place = false;               // where the pattern can
  int lifetime = 0;                    // steps until it is waited for; 0: blocking
};

struct Script {
  std::uint64_t seed = 0;
  int ranks = 1;
  std::vector<Step> steps;
};

/// Of a few to some tens of steps, on 1 to `max_ranks` ranks (on exactly `ranks` if that is not 0).
Script draw(std::uint64_t seed, int max_ranks, int ranks = 0);

/// For people, one line a step.
std::string print(const Script& script);

/// For a test of the test: spoils the bytes of a result on a rank.
using Spoil = std::function<void(const Step&, Rank world_rank, std::vector<std::byte>& result)>;

/// Runs the script on world.size() ranks. Throws std::runtime_error where a result is wrong.
void run(Communicator& world, const Script& script, const Spoil& spoil = {});

/// The smallest script found for which `fails` still holds: without steps, with fewer ranks, smaller counts,
/// blocking.
Script shrink(Script script, const std::function<bool(const Script&)>& fails);

}  // namespace shoal::comm::property
