// SPDX-License-Identifier: Apache-2.0
// Messages by MPI's point-to-point calls. Each group has an MPI communicator of its own, so that a
// program's tags never meet those of another group.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "comm/messenger.h"
#include "shoal/comm/transport.h"

namespace shoal::comm::mpi {

class MpiMessenger final : public Messenger {
 public:
  /// Collective. `communicator` holds the ranks of `world` in their order, and belongs to the caller.
  MpiMessenger(MPI_Comm communicator, const World& world);

  std::unique_ptr<Exchange> start(const Group& group, int tag, std::span<const OutgoingPart> sends,
                                  std::span<const IncomingPart> receives) override;

  /// Collective over `group`, once before its first use; and locally after its last.
  void open(const Group& group);
  void close(const Group& group) noexcept;

 private:
  MPI_Comm world_communicator_;
  const World& world_;
  std::map<std::uint64_t, MPI_Comm> communicators_;  // by context
  int largest_tag_ = 32767;                          // what every MPI allows
  bool cut_ = false;  // messages in pieces that leave at once; the same on all ranks
};

}  // namespace shoal::comm::mpi
