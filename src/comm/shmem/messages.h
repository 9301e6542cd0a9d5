// SPDX-License-Identifier: Apache-2.0
// Messages between hosts by the MPI that an OpenSHMEM library brings: over plain networks its messages are
// several times faster than puts that the receiver has to be told of. Libraries without MPI have none.
#pragma once

#include <memory>

#include "comm/messenger.h"
#include "shoal/comm/transport.h"

namespace shoal::comm::shmem {

/// Before OpenSHMEM is started: MPI has to come first to be given its thread level. Throws unsupported in a
/// program that has started MPI alone, since OpenSHMEM's end would end it too.
void prepare_messages();

class LibraryMessages {
 public:
  virtual ~LibraryMessages() = default;
  virtual Messenger& messenger() = 0;
  /// Collective over `group`, once before its first use; and locally after its last.
  virtual void open(const Group& group) = 0;
  virtual void close(const Group& group) noexcept = 0;
  /// Collective, before OpenSHMEM ends.
  virtual void finalize() = 0;
};

/// Collective over the world, which is referred to; null where the library has no MPI.
std::unique_ptr<LibraryMessages> make_messages(const World& world);

}  // namespace shoal::comm::shmem
