// SPDX-License-Identifier: Apache-2.0
// A transport that goes wrong as it is told, to try what the rest makes of it.
//
// An operation is a submit, a start, an allocate, a put or a get of this rank. What waits (progress, the
// wait of a started operation) is none, so that counts do not depend on timing.
#pragma once

#include <vector>

#include "comm/decorators/faults.h"
#include "comm/decorators/forwarding.h"

namespace shoal::comm {

class Faulty final : public Forwarding {
 public:
  Faulty(std::unique_ptr<Transport> inner, std::vector<Fault> faults);

  void submit(const Group& group, const Operation& operation) override;
  std::unique_ptr<Pending> start(const Group& group, const Operation& operation) override;
  std::unique_ptr<SymmetricMemory> allocate(const Group& group, std::size_t bytes) override;

 private:
  class Memory;
  struct Counted {
    Fault fault;
    std::uint64_t seen = 0;  // operations it applies to, so far
  };

  /// Counts an operation and does what is due. Returns true when it is to be lost.
  bool strike(Call call);
  void silence();
  std::vector<Counted> faults_;
};

}  // namespace shoal::comm
