// SPDX-License-Identifier: Apache-2.0
#include "shoal/infer/load.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "infer/segment_layout.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"
#include "shoal/comm/symmetric_segments.h"
#include "shoal/comm/transport.h"

namespace shoal::infer {
namespace {

// Grows with every put; the last one has this bit, and means that the PE has ended, well or not.
constexpr std::uint64_t ended = std::uint64_t{1} << 63;

bool has_ended(std::uint64_t sequence) { return (sequence & ended) != 0; }

class LoadBoard {
 public:
  explicit LoadBoard(comm::Communicator& communicator)
      : comm_(communicator),
        segments_(communicator, 1),
        seen_(static_cast<std::size_t>(communicator.size())) {}

  void tell(std::uint64_t done) {
    own_ = done;
    if (comm_.rank() != 0) segments_.put(0, 0, View<const std::uint64_t>(std::span(&own_, 1)), ++sequence_);
  }

  // Bytes that all PEs have read so far.
  std::uint64_t sum() {
    std::uint64_t all = own_;
    for (int pe = 1; pe < comm_.size(); ++pe) all += segments_.from(pe)[0];
    return all;
  }

  void end() {
    if (comm_.rank() != 0) segments_.put(0, 0, View<const std::uint64_t>(std::span(&own_, 1)), ended);
  }

  // PE 0: until all have ended; a PE that tells nothing for too long is named.
  void watch(const LoadProgress& show, std::uint64_t total);
  // The others: until PE 0 has seen that all have ended.
  void wait_for_all() { segments_.wait_forever(0, 1); }

 private:
  comm::Communicator& comm_;
  comm::SymmetricSegments<std::uint64_t> segments_;
  std::uint64_t own_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<std::uint64_t> seen_;
};

void LoadBoard::watch(const LoadProgress& show, std::uint64_t total) {
  auto heard = std::chrono::steady_clock::now();
  for (;;) {
    int silent = -1;
    bool all_ended = true;
    for (int pe = 1; pe < comm_.size(); ++pe) {
      const std::uint64_t sequence = segments_.received(pe);
      auto& seen = seen_[static_cast<std::size_t>(pe)];
      if (sequence != seen) heard = std::chrono::steady_clock::now();
      seen = sequence;
      if (has_ended(sequence)) continue;
      all_ended = false;
      silent = pe;
    }
    if (show) show(sum(), total);
    if (all_ended) break;
    if (std::chrono::steady_clock::now() - heard > comm::default_deadline())
      fail(ErrorCode::timeout, fmt::format("PE {} ({}) has read nothing for {} s", silent, comm_.host(silent),
                                           comm::default_deadline().count() / 1000));
    comm_.transport().progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (int pe = 1; pe < comm_.size(); ++pe) segments_.signal(pe, 1);
  segments_.flush();
}

}  // namespace

std::size_t load_symmetric_bytes(int pes) {
  return comm::SegmentMemory::footprint(pes, sizeof(std::uint64_t));
}

void check_same_model(comm::Communicator& communicator, const ModelFile& file) {
  const std::uint64_t mine[2] = {engine_protocol, file.header_hash()};
  const std::vector<std::uint64_t> all = communicator.all_gather(std::span<const std::uint64_t>(mine));
  comm::agree(communicator, [&] {
    for (int pe = 1; pe < communicator.size(); ++pe) {
      const std::uint64_t* theirs = &all[static_cast<std::size_t>(pe) * 2];
      if (theirs[0] != all[0])
        fail(ErrorCode::unsupported,
             fmt::format("PE {} ({}) speaks protocol {}, PE 0 ({}) protocol {}: install the same version of "
                         "Shoal on all hosts",
                         pe, communicator.host(pe), theirs[0], communicator.host(0), all[0]));
      if (theirs[1] != all[1])
        fail(ErrorCode::invalid_argument,
             fmt::format("{}: the model on PE {} ({}) differs from that on PE 0 ({}): header hash {:016x}, "
                         "not {:016x}; "
                         "copy the same file to all hosts",
                         file.path(), pe, communicator.host(pe), communicator.host(0), theirs[1], all[1]));
    }
  });
}

Weights load_shard(comm::Communicator& communicator, const ModelFile& file, const Plan& plan,
                   ThreadTeam& team, const LoadProgress& show) {
  LoadBoard board(communicator);
  std::uint64_t total = 0;
  for (const PePlan& pe : plan.pes) total += pe.weight_bytes;
  Weights weights;
  std::exception_ptr failure;
  try {
    weights = load_weights(file, plan.config, plan, communicator.rank(), team,
                           [&](std::uint64_t done, std::uint64_t) {
                             board.tell(done);
                             if (communicator.rank() == 0 && show) show(board.sum(), total);
                           });
  } catch (...) {
    failure = std::current_exception();
  }
  board.end();
  if (communicator.rank() == 0)
    board.watch(show, total);
  else
    board.wait_for_all();
  comm::agree(communicator, [&] {
    if (failure) std::rethrow_exception(failure);
  });
  return weights;
}

}  // namespace shoal::infer
